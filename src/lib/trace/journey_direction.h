/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A direction of a connection: its events, until their bytes are delivered. TCP delivers bytes in
 * order, so all bytes before one offset are delivered, and none after it.
 */
#ifndef NETOBS_TRACE_JOURNEY_DIRECTION_H
#define NETOBS_TRACE_JOURNEY_DIRECTION_H

#include "journey_draft.h"
#include "journey_event.h"

enum { JOURNEY_HELD_MAX = 65536 }; /* events of a direction */

/* How long forwarded bytes wait for events, since nothing ends them: later events are left out. */
#define JOURNEY_FORWARDED_NS (1000 * 1000 * 1000LL)

/* A list whose first items are removed. */
struct journey_list {
	struct journey_event **items;
	uint32_t head, n, capacity;
};

struct datagram;

struct direction {
	struct journey_ends ends;
	/* Datagrams that have not ended: all that UDP and ICMP use of this struct. */
	struct datagram *datagrams;
	uint32_t n_datagrams; /* so far */
	uint32_t n_held;      /* events, including those in journeys.waiting */
	uint64_t *n_held_by_all; /* events of all directions in memory */
	bool has_done;
	bool has_end;
	int64_t end; /* offset behind the last byte known to be in the stream */
	int64_t done;	       /* the first byte that is not delivered */
	int64_t now_ns;	       /* time of the last event that was taken */
	int64_t mark, mark_ns; /* the end as it was then */
	bool has_mark;
	int64_t cut_until; /* some events of bytes before it were left out */
	struct journey_queue pending; /* events that begin behind @done, by offset */
	struct journey_list active; /* events whose bytes include @done, by time */
	struct journey_list sends, sents; /* by offset */
	struct journey_event *called; /* the last call that has written @done or bytes before it */
	struct journey_event *copied; /* the last SEND of it for @done or bytes before it; may be @called */
	struct journey_event *last_call; /* the last call of all that were seen */
};

/** Make room for two more events. @return 0; -ENOMEM */
int direction_reserve(struct direction *direction);

/** Take an event, the next one by time, which then belongs to the direction; direction_reserve() made room. */
void direction_take(struct direction *direction, struct journey_event *event);

/** Deliver the bytes before @until that have events. */
void direction_deliver(struct direction *direction, int64_t until,
		       struct journey_draft *draft);

/** Deliver all bytes that are known to be in the stream. */
void direction_deliver_all(struct direction *direction,
			   struct journey_draft *draft);

/** Deliver bytes that are only forwarded, some time after their last event. */
void direction_forward(struct direction *direction, struct journey_draft *draft);

/** Deliver the first bytes if there are more than JOURNEY_HELD_MAX events. */
void direction_limit(struct direction *direction, struct journey_draft *draft);

/** Deliver the first half of the events: memory is short. */
void direction_halve(struct direction *direction, struct journey_draft *draft);

/** Free all events. */
void direction_clear(struct direction *direction);

#endif
