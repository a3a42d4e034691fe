// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "datagrams.h"

#include "base/util.h"

enum { FIRST_EVENTS = 8 };

/* ---- Events ------------------------------------------------------------------------------ */

static bool has_same_place(const struct journey_event *a,
			   const struct journey_event *b)
{
	return a->step.point == b->step.point && journey_same_interface(a, b) &&
	       a->offset < b->end && b->offset < a->end;
}

/* A driver that refused the datagram gets it again. */
static bool is_again(const struct journey_event *busy,
		     const struct journey_event *event)
{
	return busy->step.point == NETOBS_TRACE_BUSY &&
	       (event->step.point == NETOBS_TRACE_DEQUEUE ||
		event->step.point == NETOBS_TRACE_TRANSMIT) &&
	       journey_same_interface(busy, event);
}

bool datagram_may_pass(const struct datagram *datagram,
		       const struct journey_event *event)
{
	for (uint32_t i = datagram->n_events; i--;) {
		if (has_same_place(datagram->events[i], event))
			return false;
		if (is_again(datagram->events[i], event))
			return true;
	}
	return true;
}

int datagram_add(struct datagram *datagram, struct journey_event *event)
{
	if (datagram->n_events == JOURNEY_EVENTS_MAX ||
	    !array_reserve(&datagram->events, datagram->n_events,
			   &datagram->capacity, sizeof(*datagram->events),
			   FIRST_EVENTS))
		return -ENOMEM;
	datagram->events[datagram->n_events++] = event;
	datagram->last_ns = event->step.time_ns;
	datagram->is_fragmented |= event->is_fragment;
	return 0;
}

int64_t datagram_length(const struct datagram *datagram)
{
	int64_t length = 0;

	for (uint32_t i = 0; i < datagram->n_events; i++)
		length = max_i64(length, datagram->events[i]->end);
	return length;
}

/* ---- Journeys ---------------------------------------------------------------------------- */

/* @return the next offset where an event begins or ends; INT64_MAX: none */
static int64_t find_next(const struct datagram *datagram, int64_t offset)
{
	int64_t next = INT64_MAX;

	for (uint32_t i = 0; i < datagram->n_events; i++) {
		const struct journey_event *event = datagram->events[i];

		if (event->offset > offset)
			next = min_i64(next, event->offset);
		else if (event->end > offset)
			next = min_i64(next, event->end);
	}
	return next;
}

static bool is_received(const struct datagram *datagram)
{
	for (uint32_t i = 0; i < datagram->n_events; i++)
		if (datagram->events[i]->step.point == NETOBS_TRACE_READY ||
		    datagram->events[i]->step.point == NETOBS_TRACE_READ)
			return true;
	return false;
}

static void deliver_range(const struct datagram *datagram, int64_t offset,
			  int64_t end, const struct journey_ends *ends,
			  struct journey_draft *draft)
{
	struct journey_event *events[JOURNEY_EVENTS_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < datagram->n_events; i++)
		if (datagram->events[i]->offset <= offset &&
		    datagram->events[i]->end >= end)
			events[n++] = datagram->events[i];
	if (n)
		journey_draft_add(draft, ends,
				  &(struct journey_range){
					  .offset = offset,
					  .end = end,
					  .now_ns = datagram->last_ns,
					  .events = events,
					  .n = n,
				  });
}

void datagram_deliver(const struct datagram *datagram, struct journey_draft *draft)
{
	struct journey_ends ends = datagram->direction->ends;
	int64_t offset = -1, next;

	ends.datagram = datagram->number;
	ends.has |= NETOBS_TRACE_HAS_OFFSET;
	ends.has_sender = false; /* it begins at an interface */
	ends.has_receiver = is_received(datagram);
	while ((next = find_next(datagram, offset)) < INT64_MAX) {
		if (offset >= 0)
			deliver_range(datagram, offset, next, &ends, draft);
		offset = next;
	}
	journey_draft_flush(draft);
}

void datagram_clear(struct datagram *datagram)
{
	for (uint32_t i = 0; i < datagram->n_events; i++)
		free(datagram->events[i]);
	free(datagram->events);
}
