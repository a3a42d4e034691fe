/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Chosen connections in the order of their last events, to find the one to evict for another. */
#ifndef NETOBS_TRACE_TRACE_ROOM_H
#define NETOBS_TRACE_TRACE_ROOM_H

#include "traced.h"

/* Zeroes: empty. The connection that has been idle for longest is the first. */
struct trace_room {
	struct traced *first, *last;
};

/** Add a connection that has been chosen. */
void trace_room_add(struct trace_room *room, struct traced *traced);

/** Move a connection to the end: it has had an event, or must not be evicted yet. */
void trace_room_touch(struct trace_room *room, struct traced *traced);

void trace_room_remove(struct trace_room *room, struct traced *traced);

#endif
