/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Types of the files of turns: the path of a connection on this host, and its messages. */
#ifndef NETOBS_TRACE_TURN_STATE_H
#define NETOBS_TRACE_TURN_STATE_H

#include "journey_state.h"

#include <netobs/turn.h>
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
struct turn_place *turn_path_find(struct turn_path *path, uint32_t netns,
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
	struct netobs_turn turn;
	int64_t end; /* offset behind the last byte; INT64_MAX: not known yet */
	int64_t closed_ns, changed_ns, told_ns; /* 0: not yet */
	uint64_t cycle;				/* the number of its turn */
	struct turn_span unread[TURN_SPANS]; /* of more, the rest is left out */
	struct turn_span idle[TURN_SPANS];   /* of slices */
	uint32_t n_unread, n_idle;
	int64_t journey_end; /* offset behind the last byte of its journey */
	bool has_journey;
	bool is_decided; /* it is to be delivered: its turn is over, and not left out */
};

TAILQ_HEAD(turn_messages, turn_message);

/** @return the member of a stamp */
int64_t *turn_stamp_at(struct netobs_turn *turn, enum turn_stamp stamp);

/** Add a span of time, unless there are TURN_SPANS. */
void turn_add_span(struct turn_span *spans, uint32_t *n, int64_t from_ns,
		   int64_t until_ns);

/** Set what the journey tells of the last byte, which it has. */
void turn_fill_journey(struct turn_message *message,
		       const struct netobs_journey *journey,
		       const struct turn_path *path);

/** What threads did, if that is known: as turns_ops.thread_time. */
struct turn_threads {
	bool (*time)(void *ctx, uint32_t tid, int64_t from_ns, int64_t until_ns,
		     uint64_t ret_ns[NETOBS_THREAD_STATES]);
	void *ctx;
};

/** Set what follows from all else, and the states of threads, before the record is delivered. */
void turn_fill_end(struct turn_message *message,
		   const struct turn_threads *threads);

#endif
