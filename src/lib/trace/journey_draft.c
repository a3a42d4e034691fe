// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "journey_state.h"

#include "base/util.h"

#include <string.h>

enum { STEPS = NETOBS_JOURNEY_STEPS_MAX, ATTEMPT_MAX = UINT8_MAX };

/* ---- Which events are steps -------------------------------------------------------------- */

/* The position of the last event of the attempt that arrived. Events behind it are of copies of its packets. */
static uint32_t last_hop(const struct journey_way *way)
{
	if (way->segment < way->n)
		return way->segment;
	if (way->is_receiver_here)
		return (uint32_t)min_u64(way->ready, way->read);
	return way->acked;
}

/* @return the position of the event that ends the journey */
static uint32_t find_last(const struct journey_way *way)
{
	return way->read < way->n    ? way->read :
	       way->is_receiver_here ? way->n :
				       way->acked;
}

static bool is_step(const struct journey_way *way, uint32_t i,
		    uint8_t *ret_attempt)
{
	const struct journey_event *event = way->events[i];
	const uint16_t attempt = event->attempt;

	*ret_attempt = 0;
	switch (event->step.point) {
	case NETOBS_TRACE_READY:
		return i == way->ready && way->is_receiver_here;
	case NETOBS_TRACE_READ:
		return i == way->read;
	case NETOBS_TRACE_ACKED:
		return i == way->acked && !way->is_receiver_here;
	default:
		break;
	}
	/* A retransmission is reported once it is sent, and may have arrived by then; a datagram
	 * may be dropped by the socket that it has arrived at. */
	if (attempt == way->arrived)
		return i <= last_hop(way) || way->is_datagram ||
		       event->step.point == NETOBS_TRACE_RETRANSMIT;
	if (attempt < way->arrived)
		*ret_attempt = (uint8_t)min_u64(attempt + 1, ATTEMPT_MAX);
	return attempt < way->arrived;
}

static void add_stop(struct journey_draft *draft, uint32_t *n,
		     const struct journey_event *event, uint8_t attempt)
{
	draft->stops[(*n)++] = (struct journey_stop){ event, attempt };
}

/* Add the calls of the process before @until. A large write is sent before the call has ended. */
static uint32_t add_writing(struct journey_draft *draft,
			    const struct journey_range *range, int64_t until)
{
	const struct journey_event *const events[] = { range->called,
						       range->copied,
						       range->sent };
	const struct journey_event *last = NULL;
	uint32_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		const struct journey_event *event = events[i];

		if (!event || event == last || event->step.time_ns > until ||
		    (last && event->step.time_ns < last->step.time_ns))
			continue;
		add_stop(draft, &n, event, 0);
		last = event;
	}
	return n;
}

/* A journey begins in a socket or at an interface, so a hook of netfilter before these is not a step. */
static uint32_t find_stops(struct journey_draft *draft,
			   const struct journey_range *range,
			   const struct journey_way *way)
{
	const uint32_t last = find_last(way);
	int64_t until = INT64_MAX;
	uint8_t attempt;
	uint32_t n;

	for (uint32_t i = 0; i < way->n && until == INT64_MAX; i++)
		if (i <= last && is_step(way, i, &attempt))
			until = way->events[i]->step.time_ns;
	n = add_writing(draft, range, until);
	for (uint32_t i = 0; i < way->n && i <= last; i++)
		if (is_step(way, i, &attempt) &&
		    (n || !journey_is_hook(way->events[i])))
			add_stop(draft, &n, way->events[i], attempt);
	return n;
}

/* ---- The journey ------------------------------------------------------------------------- */

/*
 * If there are too many steps, those of earlier attempts are left out first, the last of them, and
 * then those in the middle of the way. The first and the last step of all remain, for their times.
 */
static void choose_steps(struct journey_draft *draft, uint32_t n)
{
	const uint32_t most = n > STEPS ? STEPS - 2 : STEPS;
	uint32_t n_way = 0, way = 0, others = 0;

	for (uint32_t i = 0; i < n; i++)
		n_way += !draft->stops[i].attempt;
	draft->n_kept = 0;
	for (uint32_t i = 0; i < n; i++) {
		bool is_kept = !i || i == n - 1;

		if (draft->stops[i].attempt) {
			is_kept |= n_way + others < most;
			others++;
		} else {
			is_kept |= n_way <= most || way < most / 2 ||
				   way >= n_way - most / 2;
			way++;
		}
		if (is_kept)
			draft->kept[draft->n_kept++] = (uint16_t)i;
	}
}

static bool is_same(const struct journey_draft *draft,
		    const struct journey_ends *ends,
		    const struct journey_range *range,
		    const struct journey_way *way, uint32_t n, uint64_t acked_id)
{
	const struct netobs_journey *journey = &draft->journey;

	if (!draft->is_used || draft->n_all != n ||
	    journey->n_steps != draft->n_kept || draft->acked_id != acked_id ||
	    journey->connection != ends->connection ||
	    journey->direction != ends->direction ||
	    journey->n_attempts != way->n_attempts ||
	    range->end - journey->offset > UINT32_MAX)
		return false;
	for (uint32_t i = 0; i < draft->n_kept; i++)
		if (draft->ids[i] != draft->stops[draft->kept[i]].event->id)
			return false;
	return true;
}

static void fill_ends(struct netobs_journey *journey,
		      const struct journey_ends *ends)
{
	journey->connection = ends->connection;
	journey->direction = ends->direction;
	journey->protocol = ends->protocol;
	memcpy(journey->src, ends->src, sizeof(journey->src));
	memcpy(journey->dst, ends->dst, sizeof(journey->dst));
	journey->src_port = ends->src_port;
	journey->dst_port = ends->dst_port;
	if (ends->has & NETOBS_TRACE_HAS_OFFSET)
		journey->record.has |= NETOBS_JOURNEY_HAS_OFFSET;
	if (ends->has & NETOBS_TRACE_HAS_INITIATOR)
		journey->record.has |= NETOBS_JOURNEY_HAS_INITIATOR;
}

static void fill_steps(struct journey_draft *draft)
{
	struct netobs_journey *journey = &draft->journey;

	journey->n_steps = (uint16_t)draft->n_kept;
	for (uint32_t i = 0; i < journey->n_steps; i++) {
		const struct journey_stop *stop = &draft->stops[draft->kept[i]];

		journey->steps[i] = stop->event->step;
		journey->steps[i].attempt = stop->attempt;
		if (stop->event->step.point == NETOBS_TRACE_DROP) {
			journey->n_drops++;
			journey->drop_reason = stop->event->reason;
		}
		draft->ids[i] = stop->event->id;
	}
	if (draft->n_all > draft->n_kept)
		journey->record.has |= NETOBS_JOURNEY_HAS_CUT;
}

static void fill_times(struct journey_draft *draft, bool is_datagram,
		       int64_t now_ns)
{
	struct netobs_journey *journey = &draft->journey;
	const struct netobs_journey_step *first = &journey->steps[0],
					 *last = first;

	if (!journey->n_steps) {
		journey->record.time_ns = journey->end_ns = now_ns;
		return;
	}
	last += journey->n_steps - 1;
	journey->record.time_ns = first->time_ns;
	journey->end_ns = last->time_ns;
	if (first->point == NETOBS_TRACE_SEND ||
	    first->point == NETOBS_TRACE_SENT) {
		journey->record.has |= NETOBS_JOURNEY_HAS_SEND;
		journey->src_pid = first->pid;
		memcpy(journey->src_command, first->command,
		       sizeof(journey->src_command));
	}
	if (last->point == NETOBS_TRACE_READ) {
		journey->record.has |= NETOBS_JOURNEY_HAS_READ;
		journey->dst_pid = last->pid;
		memcpy(journey->dst_command, last->command,
		       sizeof(journey->dst_command));
	}
	if (is_datagram && last->point == NETOBS_TRACE_DROP)
		journey->record.has |= NETOBS_JOURNEY_HAS_DROP;
}

static void begin_journey(struct journey_draft *draft,
			  const struct journey_ends *ends,
			  const struct journey_range *range,
			  const struct journey_way *way, uint32_t n)
{
	const struct journey_route route = {
		.stops = draft->stops,
		.n = n,
		.way = way,
	};
	struct netobs_journey *journey = &draft->journey;
	const struct journey_event *acked =
		way->acked < way->n ? way->events[way->acked] : NULL;

	*journey = (struct netobs_journey){
		.record = { .sz = sizeof(*journey),
			    .type = NETOBS_RECORD_JOURNEY },
		.offset = range->offset,
		.seq = ends->datagram ?: ends->first_seq + (uint32_t)range->offset,
		.ip_id = ends->ip_id,
		.n_attempts = way->n_attempts,
		.acked_ns = acked ? acked->step.time_ns : 0,
	};
	draft->is_used = true;
	draft->n_all = n;
	draft->acked_id = acked ? acked->id : 0;
	if (acked)
		journey->record.has |= NETOBS_JOURNEY_HAS_ACKED;
	if (range->is_cut)
		journey->record.has |= NETOBS_JOURNEY_HAS_CUT;
	fill_ends(journey, ends);
	fill_steps(draft);
	fill_times(draft, ends->datagram, range->now_ns);
	journey_parts_fill(&route, journey);
}

void journey_draft_add(struct journey_draft *draft,
		       const struct journey_ends *ends,
		       const struct journey_range *range)
{
	struct journey_way way = {
		.events = range->events,
		.n = range->n,
		.sender_netns = ends->sender_netns,
		.is_sender_here = ends->has_sender,
		.is_receiver_here = ends->has_receiver,
		.is_datagram = ends->datagram,
	};
	uint64_t acked_id;
	uint32_t n;

	journey_way_find(&way);
	n = find_stops(draft, range, &way);
	choose_steps(draft, n);
	acked_id = way.acked < way.n ? way.events[way.acked]->id : 0;
	if (!is_same(draft, ends, range, &way, n, acked_id)) {
		journey_draft_flush(draft);
		begin_journey(draft, ends, range, &way, n);
	}
	draft->journey.length = (uint32_t)(range->end - draft->journey.offset);
}

void journey_draft_flush(struct journey_draft *draft)
{
	draft->n_early += draft->is_used && draft->is_early;
	if (draft->is_used)
		draft->on_journey(&draft->journey, draft->ctx);
	draft->is_used = false;
}
