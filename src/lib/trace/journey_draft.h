/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A journey that grows by neighbouring bytes, as long as they passed the same points. */
#ifndef NETOBS_TRACE_JOURNEY_DRAFT_H
#define NETOBS_TRACE_JOURNEY_DRAFT_H

#include "journey_event.h"

/* The parts of a journey's time, from its steps. */

/* A step, with the attempt as in struct netobs_journey_step. */
struct journey_stop {
	const struct journey_event *event;
	uint8_t attempt;
};

struct journey_route {
	const struct journey_stop *stops; /* by time */
	uint32_t n;
	bool is_sender_here;
	bool is_receiver_here;
	bool is_datagram; /* only the parts on the way and in the socket apply */
	int64_t first_ns; /* when the first attempt began; without one, the time of the last stop */
};

/** Fill part_ns, unknown_ns and unknown_parts, which must be 0. */
void journey_parts_fill(const struct journey_route *route,
			struct netobs_journey *journey);

enum { JOURNEY_EVENTS_MAX = 1024 }; /* of the same bytes */

/* Data of a direction of a connection, common to all its journeys. */
struct journey_ends {
	uint64_t connection;
	uint8_t src[16], dst[16];
	uint16_t src_port, dst_port;
	uint8_t direction;
	uint8_t protocol;
	uint32_t datagram;     /* number of the datagram; 0: it is a stream */
	uint32_t has;	       /* enum netobs_trace_field */
	uint32_t first_seq;    /* of the byte at offset 0 */
	uint32_t sender_netns; /* of the sender's socket; 0: not known */
	bool has_sender, has_receiver; /* the socket of that end had an event */
	bool has_socket_ends; /* addresses are those of the sender's socket */
};

/* A range of bytes, and all events with them. */
struct journey_range {
	int64_t offset, end;
	int64_t now_ns; /* of a range without events */
	/* NULL: not seen. The call may have begun with bytes before these, at @called. */
	const struct journey_event *called, *copied, *sent;
	struct journey_event *const *events; /* others, by time */
	uint32_t n;			     /* JOURNEY_EVENTS_MAX at most */
	bool is_cut;			     /* there were more events */
};

struct journey_draft {
	void (*on_journey)(struct netobs_journey *journey, void *ctx);
	void *ctx;
	bool is_used;
	bool is_early; /* journeys are delivered before they have ended */
	uint64_t n_early;
	struct netobs_journey journey;
	uint64_t ids[NETOBS_JOURNEY_STEPS_MAX]; /* of its steps */
	uint64_t acked_id;
	uint32_t n_all; /* steps, including those that were left out */
	/* Of the current range: all steps, and the indexes of those that are kept. */
	struct journey_stop stops[JOURNEY_EVENTS_MAX + 3];
	uint16_t kept[NETOBS_JOURNEY_STEPS_MAX];
	uint32_t n_kept;
};

/** Add a range to the journey; if it does not fit, deliver that and begin another one. */
void journey_draft_add(struct journey_draft *draft,
		       const struct journey_ends *ends,
		       const struct journey_range *range);

/** Deliver the journey, if there is one. */
void journey_draft_flush(struct journey_draft *draft);

/* The way of bytes that passed all points together: which attempt arrived, and when. */

struct journey_way {
	/* Events of these bytes, by time; without NETOBS_TRACE_SEND and _SENT. */
	struct journey_event *const *events;
	uint32_t n;
	uint32_t sender_netns; /* of the sender's socket; 0: not known */
	bool is_sender_here;   /* an event of the sender's socket was seen */
	bool is_receiver_here;
	bool is_datagram;

	/* Set by journey_way_find(), as are the attempts of the events: */
	uint32_t n_attempts; /* from the first interface */
	uint16_t arrived;    /* the attempt that arrived, or the last one */
	int64_t first_ns;    /* when the first attempt began, if there is one */
	bool has_attempt;
	uint16_t n_begun; /* numbers of attempts that events have */
	/* Positions in events; n: none. */
	uint32_t segment, ready, read, acked;
};

/** Set the second half of @way, and the attempt of each event. */
void journey_way_find(struct journey_way *way);

/*
 * Netfilter's hooks in journeys. They are steps, but no part of a journey's time begins there: the
 * parts are equal whether hooks are seen or not.
 */

/** Assign each event at a hook to its attempt, if that is known; after journey_way_find(). */
void journey_hooks_join(const struct journey_way *way);

/** Fill netfilter_ns, and its bit of record.has. */
void journey_hooks_fill(const struct journey_route *route,
			struct netobs_journey *journey);

#endif
