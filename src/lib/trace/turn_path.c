// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The order of the interfaces that packets pass on this host: a buffer that is seen at one of them, and next at
 * another one, shows which of them is not the last, or not the first. Addresses of buffers are used again, so
 * the first interface of all never comes after another one.
 */
#include "turn_state.h"

#include <string.h>

struct turn_place *turn_path_find(const struct turn_path *path, uint32_t netns,
				  uint32_t ifindex)
{
	for (uint32_t i = 0; i < path->n; i++)
		if (path->places[i].ifindex == ifindex &&
		    path->places[i].netns == netns)
			return (struct turn_place *)&path->places[i];
	return NULL;
}

static struct turn_place *get_place(struct turn_path *path, uint32_t netns,
				    uint32_t ifindex)
{
	struct turn_place *place = turn_path_find(path, netns, ifindex);

	if (place || path->n == TURN_PLACES)
		return place;
	place = &path->places[path->n++];
	place->netns = netns;
	place->ifindex = ifindex;
	return place;
}

static bool has_headers(uint8_t point)
{
	return point >= NETOBS_TRACE_QUEUE && point <= NETOBS_TRACE_RECEIVE;
}

void turn_path_note(struct turn_path *path, const struct netobs_trace_event *event)
{
	const uint8_t bit = 1 << (event->direction & 1);
	struct turn_tuple *tuple;
	struct turn_place *place;

	if (!has_headers(event->point) || !event->ifindex)
		return;
	place = get_place(path, event->netns_inode, event->ifindex);
	if (!place || place->named & bit)
		return;
	place->named |= bit;
	memcpy(place->name, event->interface, sizeof(place->name));
	tuple = &place->tuples[event->direction & 1];
	memcpy(tuple->src, event->src, sizeof(tuple->src));
	memcpy(tuple->dst, event->dst, sizeof(tuple->dst));
	tuple->src_port = event->src_port;
	tuple->dst_port = event->dst_port;
}

static void leave_trail(struct turn_path *path, uint32_t direction, uint32_t at,
			const struct journey_event *event, uint8_t place)
{
	path->trail[direction][at].buffer = event->buffer;
	path->trail[direction][at].offset = event->offset;
	path->trail[direction][at].place = place;
}

bool turn_path_pass(struct turn_path *path, struct turn_place *place,
		    const struct journey_event *event)
{
	const uint32_t direction = event->direction->ends.direction & 1;
	const uint8_t here = (uint8_t)(place - path->places);
	const uint8_t bit = (uint8_t)(1 << direction);
	const uint8_t before = place->before;
	struct turn_place *last;
	uint8_t after;
	uint32_t i = 0;

	if (!path->first[direction])
		path->first[direction] = here + 1;
	while (i < TURN_TRAIL &&
	       (path->trail[direction][i].buffer != event->buffer ||
		path->trail[direction][i].offset != event->offset))
		i++;
	if (i == TURN_TRAIL) {
		leave_trail(path, direction,
			    path->next[direction]++ % TURN_TRAIL, event, here);
		return false;
	}
	last = &path->places[path->trail[direction][i].place];
	leave_trail(path, direction, i, event, here);
	if (last == place || path->first[direction] == here + 1)
		return false;
	after = last->after;
	last->after |= bit;
	place->before |= bit;
	return last->after != after || place->before != before;
}
