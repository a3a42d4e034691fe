/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Types of the files of turns: the path of a connection on this host, and its messages. */
#ifndef NETOBS_TRACE_TURN_STATE_H
#define NETOBS_TRACE_TURN_STATE_H

#include "base/slots.h"
#include "base/util.h"
#include "journey_state.h"
#include "turn_ops.h"

#include <netobs/turn.h>
#include <string.h>
#include <sys/queue.h>

/* ---- The interfaces that packets of a connection pass ------------------------------------ */

enum { TURN_PLACES = 8, TURN_TRAIL = 8 };

struct turn_tuple {
	uint8_t src[16], dst[16];
	uint16_t src_port, dst_port;
};

struct turn_place {
	uint32_t netns, ifindex;
	char name[16];
	struct turn_tuple tuples[2]; /* by direction */
	/* Bits of directions: */
	uint8_t named;	 /* tuples are set */
	uint8_t arrived; /* packets had ARRIVE there */
	uint8_t before;	 /* packets pass another interface before it, */
	uint8_t after;	 /* or after it */
};

struct turn_path {
	struct turn_place places[TURN_PLACES]; /* further ones are left out */
	uint32_t n;
	/* The places of the last buffers, by direction. */
	struct {
		uint64_t buffer;
		int64_t offset;
		uint8_t place;
	} trail[2][TURN_TRAIL];
	uint8_t next[2];
	uint8_t first[2]; /* the place that was passed first, plus 1; 0: none */
};

/** Note the interface of an event, its name and its tuple, in any order. */
void turn_path_note(struct turn_path *path,
		    const struct netobs_trace_event *event);

/** @return the place of an interface; NULL: there is none */
struct turn_place *turn_path_find(const struct turn_path *path, uint32_t netns,
				  uint32_t ifindex);

/** Note that a packet is at @place. @return whether another place turned out not to be the last or first one */
bool turn_path_pass(struct turn_path *path, struct turn_place *place,
		    const struct journey_event *event);

/* ---- Messages ------------------------------------------------------------------------------ */

/* Stamps of the last byte: members of struct netobs_turn. */
enum turn_stamp {
	STAMP_WRITTEN,
	STAMP_SENT,
	STAMP_OUT,
	STAMP_IN,
	STAMP_SEGMENT,
	STAMP_READY,
	STAMP_READ,
	STAMP_ACKED,
	TURN_STAMPS
};

enum { TURN_SPANS = 8 };

struct turn_span {
	int64_t from_ns, until_ns;
};

/* A message, or a slice, or a handshake, with the record that it becomes. */
struct turn_message {
	TAILQ_ENTRY(turn_message) in_list;
	struct turn_half *half;
	struct netobs_turn turn;
	int64_t end; /* offset behind the last byte; INT64_MAX: not known yet */
	int64_t closed_ns, changed_ns, told_ns; /* 0: not yet */
	uint64_t cycle;				/* the number of its turn */
	struct turn_span unread[TURN_SPANS];	/* of more, the longest */
	struct turn_span idle[TURN_SPANS];	/* of slices */
	uint32_t n_unread, n_idle;
	int64_t journey_end; /* offset behind the last byte of its journey */
	bool has_journey;
	bool is_decided; /* it is to be delivered: its turn is over, and not left out */
};

TAILQ_HEAD(turn_messages, turn_message);

/** @return the member of a stamp */
int64_t *turn_stamp_at(struct netobs_turn *turn, enum turn_stamp stamp);

/** Add a span of time, or extend the one that ends at @from_ns; of more than TURN_SPANS, the longest are kept. */
void turn_add_span(struct turn_span *spans, uint32_t *n, int64_t from_ns,
		   int64_t until_ns);

/** Bytes could be read, @since_ns, and have not all been read before @until_ns. */
void turn_add_unread(struct turn_message *message, int64_t since_ns,
		     int64_t until_ns);

/** Set what the journey tells of the last byte, which it has. */
void turn_fill_journey(struct turn_message *message,
		       const struct netobs_journey *journey);

/* ---- Directions and connections ------------------------------------------------------------- */

enum {
	TURN_OVERLAPS = 6, /* then a connection has no turns */
	TURN_HARMLESS = 16,
};

/* What the process at a socket does. */
enum turn_doing { TURN_IDLES, TURN_WRITES, TURN_READS };

struct turn_process {
	uint32_t pid, tid;
	char command[16];
};

/* A direction of a connection, and the socket that sends in it. */
struct turn_half {
	struct turn_connection *connection;
	uint8_t direction;
	struct turn_message *open; /* begins at @start */
	struct turn_messages closed;
	struct turn_message *slice; /* NULL: messages end often enough */
	int64_t start;
	bool has_offset; /* 0 is the first byte of the stream */
	bool has_start, is_sender_here, is_reader_here;
	bool has_socket; /* tuple and netns are those of the socket */
	bool has_sender; /* of the sender's */
	bool has_limits;
	enum turn_doing doing; /* of the socket that sends */
	/* The highest byte that each stamp is of, and when it was. */
	int64_t reach[TURN_STAMPS], reach_ns[TURN_STAMPS];
	struct turn_place *uplink;
	struct turn_tuple tuple;
	uint32_t netns;
	struct turn_process writer, reader;
	uint64_t limits[NETOBS_TURN_LIMITS]; /* since bytes were sent first */
	int64_t limit_ns;
	uint8_t last_limit;
	int64_t unread_ns; /* since then, bytes can be read; 0: none */
	/* Of slices: sums over the bytes of journeys. */
	double part_sums[NETOBS_JOURNEY_PARTS];
	uint64_t part_bytes;
	char drop_cause[64], drop_function[64];
};

struct turn_connection {
	struct turns *turns;
	uint64_t id;
	struct turn_half halves[2];
	struct turn_path path;
	struct turn_message *connect;
	uint32_t first_seq[2];
	uint32_t has; /* enum netobs_trace_field */
	uint8_t protocol;
	uint8_t overlaps;
	int64_t ticked_ns;
	/* Choice of one of n turns: number, beginning and key of the turn, which are equal on all hosts. */
	uint64_t cycle;
	int64_t cycle_ns;
	uint32_t key;
	int64_t mean_ns;
	int64_t tokens_ns; /* records that may be delivered, as the time in which they become so many */
	int64_t filled_ns;
	bool is_thinned;
	int64_t datagram_ns,
		slow_ns; /* of datagrams: the last one, and how long their journeys take, the mean */
	uint32_t ip_id, number,
		repeats; /* of the last request, and how many in a row had its ip_id before */
};

struct turns {
	struct turns_ops ops;
	struct slots connections; /* pointers, by id */
	struct turn_connection *last; /* of the last event: often the next one's, too */
	int64_t now_ns;
	uint64_t n_thinned;
	uint32_t n_held;
	uint32_t harmless[TURN_HARMLESS]; /* reasons of drops by which nothing is lost */
	uint32_t n_harmless;
};

/** @return whether one of these points is seen, 1 << enum netobs_trace_point */
static inline bool turn_sees(const struct turn_half *half, uint32_t points)
{
	const struct turns_ops *ops = &half->connection->turns->ops;

	return !ops->sees || ops->sees(ops->ctx, points);
}

static inline struct turn_half *turn_other(const struct turn_half *half)
{
	return &half->connection->halves[!half->direction];
}

static inline void turn_set_decision(struct turn_message *message, uint32_t one_of)
{
	message->is_decided = true;
	message->turn.one_of = one_of;
}

static inline bool turn_has_turns(const struct turn_half *half)
{
	return half->connection->overlaps < TURN_OVERLAPS;
}

/** @return a message, slice or handshake that begins; NULL: no memory */
struct turn_message *turn_message_new(struct turn_half *half, uint8_t kind,
				      int64_t offset, int64_t now_ns);

/** @message: or NULL */
void turn_message_free(struct turn_message *message);

/** Deliver its record. @now_ns: 0: it has ended */
void turn_deliver(struct turn_message *message, int64_t now_ns);

/** @return whether so many records are within the limit; then they are paid for */
bool turn_pay(struct turn_connection *connection, uint32_t n_records,
	      int64_t now_ns);

/** @return one of how many is delivered; 0: not this one */
uint32_t turn_decide(struct turn_connection *connection, int64_t took_ns,
		     int64_t now_ns, uint32_t n_records, bool is_slow);

/** @return whether requests pass in a direction: that of who opened it, or else, as all hosts see it, from the higher port */
bool turn_asks(const struct turn_connection *connection, uint8_t direction);

/** A message begins: of requests, the turn before it is over, and it is decided about its records. */
void turn_begin_cycle(struct turn_half *half, uint32_t seq, int64_t now_ns);

/** @return the message of the direction that has not ended, which may begin now; NULL: no memory */
struct turn_message *turn_open(struct turn_half *half, int64_t offset,
			       int64_t now_ns);

/** End the message before @end. @answer_ns: its reader writes; 0: its writer reads */
void turn_close(struct turn_half *half, int64_t end, int64_t now_ns,
		int64_t answer_ns);

/** Set the length, up to @end. */
void turn_set_length(struct turn_message *message, int64_t end);

/** Set the stamps of the last byte, as far as it has come. */
void turn_fill_stamps(struct turn_message *message);

/** Set a stamp of the bytes of an event, whose messages may have ended. */
void turn_stamp_bytes(struct turn_half *half, enum turn_stamp stamp,
		      const struct journey_event *event);

/** The time until now belongs to @limit. */
void turn_spend(struct turn_half *half, enum netobs_turn_limit limit,
		int64_t now_ns);

/** Note the limit of an event, if it has one. */
void turn_note_limit(struct turn_half *half, const struct journey_event *event);

/** Bytes are sent for the first time: what has kept them is known now. */
void turn_spend_all(struct turn_half *half, const struct journey_event *event);

/** Set the process to that of the event. */
void turn_note_process(struct turn_process *process,
		       const struct journey_event *event);

/** All that can be read has been. */
void turn_end_unread(struct turn_half *half, int64_t now_ns);

/** @return what a packet at an interface is for a message; TURN_STAMPS: nothing */
enum turn_stamp turn_stamp_of(const struct turn_half *half,
			      struct turn_place *place, uint8_t point);

/** Set the uplink, if it is there. */
void turn_set_uplink(struct turn_half *half, struct turn_place *place,
		     enum turn_stamp stamp);

/** Take an event of TCP. */
void turn_take_stream(struct turn_half *half, const struct journey_event *event);

/** Take an event of a datagram. */
void turn_take_datagram(struct turn_half *half,
			const struct journey_event *event);

/** Make a message of the journey of a datagram. */
void turn_join_datagram(struct turn_half *half,
			const struct netobs_journey *journey);

#endif
