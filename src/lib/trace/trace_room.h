/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Chosen connections in the order of their last events: which one makes room for another. */
#ifndef NETOBS_TRACE_TRACE_ROOM_H
#define NETOBS_TRACE_TRACE_ROOM_H

#include "traced.h"

/* Zeroes: none. Those that are idle for longest are first. */
struct trace_room {
	struct traced *first, *last;
};

/** Add one that is chosen now. */
void trace_room_add(struct trace_room *room, struct traced *traced);

/** Move a connection to the end: it has had an event, or is not to make room yet. */
void trace_room_touch(struct trace_room *room, struct traced *traced);

void trace_room_remove(struct trace_room *room, struct traced *traced);

#endif
