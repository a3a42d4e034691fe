/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The datagrams of all connections, and which one an event belongs to: the one with its buffer, or,
 * where the buffer changes, with the number in its header that fragments and echoes have.
 */
#ifndef NETOBS_TRACE_DATAGRAMS_H
#define NETOBS_TRACE_DATAGRAMS_H

#include "journey_direction.h"

/* A datagram on its way: its events, until it is read or dropped, or no more events are expected. */

/* Where a datagram is, which determines how long its next event may take. */
enum datagram_state {
	DATAGRAM_MOVING,
	DATAGRAM_QUEUED,   /* in a queue of an interface */
	DATAGRAM_READABLE, /* in a socket */
	DATAGRAM_STATES
};

/* Kinds of keys by which a datagram is found, within its direction. */
enum datagram_mark { DATAGRAM_BUFFER, DATAGRAM_IP_ID, DATAGRAM_ECHO };

struct datagram_key {
	struct datagram_key *next; /* of the bucket */
	struct datagram_key *next_own;
	struct datagram *datagram;
	uint64_t value;
	uint8_t mark; /* enum datagram_mark */
};

struct datagram {
	struct direction *direction;
	struct datagram *next, *before;		  /* of its state, by time */
	struct datagram *next_of, *before_of;	  /* of its direction */
	struct datagram *next_read, *before_read; /* of its socket */
	struct datagram_key *keys;
	struct journey_event **events; /* by time */
	uint32_t n_events, capacity;
	uint32_t number; /* in its direction */
	uint32_t ip_id;
	int64_t last_ns;
	uint64_t socket; /* the socket whose queue has it; 0: none */
	uint8_t state;	 /* enum datagram_state */
	bool is_fragmented;
	bool is_read_unseen; /* the time when it was read cannot be known any more */
};

/** @return whether @event may be the next one of the datagram: it has none of that place and these bytes */
bool datagram_may_pass(const struct datagram *datagram,
		       const struct journey_event *event);

/** Add an event of the datagram, later than its others. @return 0; -ENOMEM */
int datagram_add(struct datagram *datagram, struct journey_event *event);

/** @return the end of its last observed bytes */
int64_t datagram_length(const struct datagram *datagram);

/** Deliver the datagram's journeys: one, or several if its fragments passed points separately. */
void datagram_deliver(const struct datagram *datagram,
		      struct journey_draft *draft);

/** Free the contents of @datagram. */
void datagram_clear(struct datagram *datagram);

struct datagrams;

/** @return 0; -ENOMEM */
int datagrams_new(struct datagrams **ret_datagrams);

/** Call it after datagrams_end() of each direction. */
void datagrams_free(struct datagrams *datagrams);

/**
 * Take an event, the next one by time, which then belongs to the table. Deliver the datagrams that it
 * ends.
 */
void datagrams_take(struct datagrams *datagrams, struct journey_event *event,
		    struct journey_draft *draft);

/** Deliver the datagrams of which no more events are expected at @now_ns. */
void datagrams_advance(struct datagrams *datagrams, int64_t now_ns,
		       struct journey_draft *draft);

/** Deliver the older half of the datagrams on their way: memory is short. */
void datagrams_halve(struct datagrams *datagrams, struct journey_draft *draft);

/** Deliver all datagrams of a direction; with @draft NULL, discard them. */
void datagrams_end(struct datagrams *datagrams, struct direction *direction,
		   struct journey_draft *draft);

/* A table of datagrams by keys that their events have in common: buffer, IP id, echo number. */

/* Zeroes: empty. */
struct datagram_keys {
	struct datagram_key **buckets;
	uint32_t n_buckets; /* a power of two */
	uint32_t n;
};

/** @return the datagram that was set last; NULL: none */
struct datagram *datagram_keys_find(const struct datagram_keys *keys,
				    const struct direction *direction,
				    enum datagram_mark mark, uint64_t value);

/** Make @mark and @value find @datagram, and no other one. Without memory, nothing changes. */
void datagram_keys_set(struct datagram_keys *keys, struct datagram *datagram,
		       enum datagram_mark mark, uint64_t value);

/** Remove all keys of @datagram. */
void datagram_keys_remove(struct datagram_keys *keys, struct datagram *datagram);

/** Free the table; all datagrams have been removed. */
void datagram_keys_free(struct datagram_keys *keys);

/* Sockets with unread datagrams, in the order in which these are read. */

struct datagram_reader {
	uint64_t socket;
	struct datagram *first, *last;
};

/* Zeroes: none. */
struct datagram_readers {
	struct datagram_reader *items; /* by socket */
	uint32_t n, capacity;
};

/** Put @datagram at the end of the socket's queue. Without memory, the time when it is read stays unknown. */
void datagram_readers_push(struct datagram_readers *readers,
			   struct datagram *datagram, uint64_t socket);

/** @return the datagram that is read next; NULL: none */
struct datagram *datagram_readers_first(const struct datagram_readers *readers,
					uint64_t socket);

/** @return the socket's datagram whose last buffer is @buffer; NULL: none */
struct datagram *datagram_readers_find(const struct datagram_readers *readers,
				       uint64_t socket, uint64_t buffer);

/** Note that it is unknown which datagrams of the socket have been read. */
void datagram_readers_obscure(struct datagram_readers *readers, uint64_t socket);

/** Remove @datagram from its socket's queue, if it is in one. */
void datagram_readers_remove(struct datagram_readers *readers,
			     struct datagram *datagram);

void datagram_readers_free(struct datagram_readers *readers);

#endif
