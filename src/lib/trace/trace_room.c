// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "traced.h"

#include <stddef.h>

void trace_room_add(struct trace_room *room, struct traced *traced)
{
	traced->listed_ns = traced->last_ns;
	traced->next_idle = NULL;
	traced->before_idle = room->last;
	if (room->last)
		room->last->next_idle = traced;
	else
		room->first = traced;
	room->last = traced;
}

void trace_room_remove(struct trace_room *room, struct traced *traced)
{
	if (traced->before_idle)
		traced->before_idle->next_idle = traced->next_idle;
	else
		room->first = traced->next_idle;
	if (traced->next_idle)
		traced->next_idle->before_idle = traced->before_idle;
	else
		room->last = traced->before_idle;
}

void trace_room_touch(struct trace_room *room, struct traced *traced)
{
	trace_room_remove(room, traced);
	trace_room_add(room, traced);
}
