/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The parts of a journey's time, from its steps. */
#ifndef NETOBS_TRACE_JOURNEY_PARTS_H
#define NETOBS_TRACE_JOURNEY_PARTS_H

#include "journey_event.h"

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

#endif
