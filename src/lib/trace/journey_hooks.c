// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "journey_draft.h"

/* ---- Attempts ---------------------------------------------------------------------------- */

/* The hook comes before an interface that sends, and not after one that has received. */
static bool is_leaving(const struct journey_event *event)
{
	return event->step.point >= NETOBS_TRACE_FORWARD;
}

static bool is_joined(const struct journey_way *way,
		      const struct journey_event *event)
{
	return !journey_is_hook(event) && event->attempt < way->n_begun;
}

/* @return the nearest event with the same buffer, before or after the one at @i; way->n: none */
static uint32_t find_buffer(const struct journey_way *way, uint32_t i,
			    bool is_behind)
{
	const uint64_t buffer = way->events[i]->buffer;
	const uint32_t step = is_behind ? 1 : UINT32_MAX;

	if (!buffer)
		return way->n;
	/* In front of the first one it wraps around. */
	for (i += step; i < way->n; i += step)
		if (way->events[i]->buffer == buffer &&
		    is_joined(way, way->events[i]))
			return i;
	return way->n;
}

static uint16_t find_attempt(const struct journey_way *way, uint32_t i)
{
	const bool is_behind = is_leaving(way->events[i]);
	uint32_t found = find_buffer(way, i, is_behind);

	if (found == way->n)
		found = find_buffer(way, i, !is_behind);
	if (found < way->n)
		return way->events[found]->attempt;
	return way->n_begun == 1 ? 0 : UINT16_MAX;
}

void journey_hooks_join(const struct journey_way *way)
{
	for (uint32_t i = 0; i < way->n; i++)
		if (journey_is_hook(way->events[i]))
			way->events[i]->attempt = find_attempt(way, i);
}

/* ---- Time ---------------------------------------------------------------------------------- */

static bool begins_hook(const struct journey_event *event)
{
	return journey_is_hook(event) &&
	       !((event->step.point - NETOBS_TRACE_PREROUTING) % 2);
}

/* A rule may drop the packet at the hook. */
static bool ends_hook(const struct journey_event *begin,
		      const struct journey_event *event)
{
	return event->step.netns_inode == begin->step.netns_inode &&
	       (event->step.point == begin->step.point + 1 ||
		event->step.point == NETOBS_TRACE_DROP);
}

static const struct journey_event *find_end(const struct journey_route *route,
					    uint32_t i)
{
	const struct journey_event *begin = route->stops[i].event;

	for (i++; i < route->n; i++)
		if (!route->stops[i].attempt &&
		    ends_hook(begin, route->stops[i].event))
			return route->stops[i].event;
	return NULL;
}

void journey_hooks_fill(const struct journey_route *route,
			struct netobs_journey *journey)
{
	for (uint32_t i = 0; i < route->n; i++) {
		const struct journey_event *begin = route->stops[i].event, *end;

		if (route->stops[i].attempt || !begins_hook(begin))
			continue;
		end = find_end(route, i);
		if (!end)
			continue;
		journey->netfilter_ns +=
			(uint64_t)(end->step.time_ns - begin->step.time_ns);
		journey->record.has |= NETOBS_JOURNEY_HAS_NETFILTER;
	}
}
