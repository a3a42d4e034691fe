/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A datagram on its way: its events, until it is read or dropped, or no more events are expected. */
#ifndef NETOBS_TRACE_DATAGRAM_H
#define NETOBS_TRACE_DATAGRAM_H

#include "journey_direction.h"

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

#endif
