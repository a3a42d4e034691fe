/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The way of bytes that passed all points together: which attempt arrived, and when. */
#ifndef NETOBS_TRACE_JOURNEY_WAY_H
#define NETOBS_TRACE_JOURNEY_WAY_H

#include "journey_event.h"

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

#endif
