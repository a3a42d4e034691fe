// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "journey_state.h"

#include "base/util.h"

enum { FIRST_EVENTS = 32 };

/* ---- Lists ------------------------------------------------------------------------------- */

static void insert_by_offset(struct direction *direction,
			     struct journey_events *list,
			     struct journey_event *event)
{
	struct journey_event *before = TAILQ_LAST(list, journey_events);

	while (before && before->offset > event->offset)
		before = TAILQ_PREV(before, journey_events, in_list);
	if (before)
		TAILQ_INSERT_AFTER(list, before, event, in_list);
	else
		TAILQ_INSERT_HEAD(list, event, in_list);
	direction->n_listed++;
}

static struct journey_event *pop_first(struct direction *direction,
				       struct journey_events *list)
{
	struct journey_event *first = TAILQ_FIRST(list);

	TAILQ_REMOVE(list, first, in_list);
	direction->n_listed--;
	return first;
}

static bool is_later(const struct journey_event *a, const struct journey_event *b)
{
	return a->step.time_ns != b->step.time_ns ?
		       a->step.time_ns > b->step.time_ns :
		       a->id > b->id;
}

static void insert_active(struct direction *direction, struct journey_event *event)
{
	uint32_t i = direction->n_active++;

	for (; i && is_later(direction->active[i - 1], event); i--)
		direction->active[i] = direction->active[i - 1];
	direction->active[i] = event;
}

/* ---- Events ------------------------------------------------------------------------------ */

struct journey_event *journey_event_hold(const struct journey_event *event)
{
	struct journey_event *held = malloc(sizeof(*held));

	if (!held)
		return NULL;
	*held = *event;
	held->direction->n_held++;
	++*held->direction->n_held_by_all;
	return held;
}

void journey_event_free(struct journey_event *event)
{
	struct direction *direction = event ? event->direction : NULL;

	if (!event)
		return;
	if (direction->last_call == event)
		direction->last_call = NULL;
	direction->n_held--;
	--*direction->n_held_by_all;
	free(event);
}

void direction_init(struct direction *direction, uint64_t *n_held_by_all)
{
	direction->n_held_by_all = n_held_by_all;
	TAILQ_INIT(&direction->sends);
	TAILQ_INIT(&direction->sents);
}

int direction_reserve(struct direction *direction)
{
	const uint32_t n = direction->n_held + 2;

	while (direction->active_capacity < n)
		if (!array_reserve(&direction->active, direction->active_capacity,
				   &direction->active_capacity,
				   sizeof(*direction->active), FIRST_EVENTS))
			return -ENOMEM;
	return journey_queue_reserve(&direction->pending, n) ? 0 : -ENOMEM;
}

/* A call that does not block may write less than it wanted, and the next one takes it from there. */
static void take_send(struct direction *direction, struct journey_event *event)
{
	struct journey_event *call = direction->last_call;

	event->call_end = event->end;
	event->begins_call = !call || call->ends_call ||
			     call->call_end != event->call_end ||
			     call->offset > event->offset ||
			     call->step.pid != event->step.pid;
	if (event->begins_call) {
		if (call && call->offset <= event->offset)
			call->end = min_i64(call->end, event->offset);
		direction->last_call = event;
	}
	insert_by_offset(direction, &direction->sends, event);
}

static void take_sent(struct direction *direction, struct journey_event *event)
{
	struct journey_event *call = direction->last_call;

	if (call && event->end > call->offset) {
		call->ends_call = true;
		call->end = min_i64(call->end, event->end);
	}
	insert_by_offset(direction, &direction->sents, event);
}

/* A SEND shows that bytes before it are in the stream, but its own bytes may never be. */
static void note_end(struct direction *direction,
		     const struct journey_event *event)
{
	const int64_t end = event->step.point == NETOBS_TRACE_SEND ?
				    event->offset :
				    event->end;

	if (!direction->has_end || end > direction->end)
		direction->end = end;
	direction->has_end = true;
}

void direction_take(struct direction *direction, struct journey_event *event)
{
	note_end(direction, event);
	direction->now_ns = max_i64(direction->now_ns, event->step.time_ns);
	if (direction->has_done && event->end <= direction->done) {
		journey_event_free(event);
		return;
	}
	if (event->step.point == NETOBS_TRACE_SEND)
		take_send(direction, event);
	else if (event->step.point == NETOBS_TRACE_SENT)
		take_sent(direction, event);
	else
		journey_queue_push(&direction->pending, event->offset, event);
}

/* ---- Moving on --------------------------------------------------------------------------- */

/* Keep the first and the last SEND of each call. */
static void pass_send(struct direction *direction, struct journey_event *event)
{
	if (direction->copied != direction->called)
		journey_event_free(direction->copied);
	if (event->begins_call || !direction->called) {
		journey_event_free(direction->called);
		direction->called = event;
	}
	direction->copied = event;
}

static void remove_ended(struct direction *direction)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < direction->n_active; i++) {
		struct journey_event *event = direction->active[i];

		if (event->end <= direction->done)
			journey_event_free(event);
		else
			direction->active[n++] = event;
	}
	direction->n_active = n;
}

/* Leave out events in the middle of bytes that pass too many points. */
static void cut_active(struct direction *direction)
{
	const uint32_t middle = direction->n_active / 2;
	struct journey_event **at = &direction->active[middle];

	direction->cut_until = max_i64(direction->cut_until, (*at)->end);
	journey_event_free(*at);
	memmove(at, at + 1, (--direction->n_active - middle) * sizeof(*at));
}

/* Make the events active whose bytes include @done. */
static void move_on(struct direction *direction)
{
	const int64_t done = direction->done;
	struct journey_queue *pending = &direction->pending;

	remove_ended(direction);
	while (pending->n && pending->items[0].key <= done) {
		struct journey_event *event = journey_queue_pop(pending);

		if (event->end <= done) {
			journey_event_free(event);
			continue;
		}
		insert_active(direction, event);
		if (direction->n_active > JOURNEY_EVENTS_MAX)
			cut_active(direction);
	}
	while (!TAILQ_EMPTY(&direction->sends) &&
	       TAILQ_FIRST(&direction->sends)->offset <= done)
		pass_send(direction, pop_first(direction, &direction->sends));
	while (!TAILQ_EMPTY(&direction->sents) &&
	       TAILQ_FIRST(&direction->sents)->end <= done)
		journey_event_free(pop_first(direction, &direction->sents));
}

static bool has_done(const struct journey_event *event,
		     const struct direction *direction)
{
	return event && event->offset <= direction->done &&
	       event->end > direction->done;
}

static int64_t next_bound(int64_t bound, const struct direction *direction,
			  const struct journey_event *event)
{
	if (!event || event->end <= direction->done)
		return bound;
	return min_i64(bound, event->offset > direction->done ? event->offset :
								event->end);
}

/* @return the next offset where an event begins or ends; INT64_MAX: none */
static int64_t find_bound(const struct direction *direction)
{
	int64_t bound = INT64_MAX;

	for (uint32_t i = 0; i < direction->n_active; i++)
		bound = min_i64(bound, direction->active[i]->end);
	if (direction->pending.n)
		bound = min_i64(bound, direction->pending.items[0].key);
	if (!TAILQ_EMPTY(&direction->sends))
		bound = min_i64(bound, TAILQ_FIRST(&direction->sends)->offset);
	bound = next_bound(bound, direction, TAILQ_FIRST(&direction->sents));
	return next_bound(bound, direction, direction->called);
}

static void deliver_range(struct direction *direction, int64_t end,
			  struct journey_draft *draft)
{
	const struct journey_event *sent = TAILQ_FIRST(&direction->sents);
	const bool is_called = has_done(direction->called, direction);

	journey_draft_add(
		draft, &direction->ends,
		&(struct journey_range){
			.offset = direction->done,
			.end = end,
			.now_ns = direction->now_ns,
			.called = is_called ? direction->called : NULL,
			.copied = is_called ? direction->copied : NULL,
			.sent = has_done(sent, direction) ? sent : NULL,
			.events = direction->active,
			.n = direction->n_active,
			.is_cut = direction->cut_until > direction->done,
		});
	direction->done = end;
}

/* Set @done to the first byte with an event. False: there is none. */
static bool find_start(struct direction *direction)
{
	int64_t start = INT64_MAX;

	if (direction->pending.n)
		start = direction->pending.items[0].key;
	if (!TAILQ_EMPTY(&direction->sends))
		start = min_i64(start, TAILQ_FIRST(&direction->sends)->offset);
	if (!TAILQ_EMPTY(&direction->sents))
		start = min_i64(start, TAILQ_FIRST(&direction->sents)->offset);
	direction->done = start;
	return start < INT64_MAX;
}

/* @return false: no later bytes have events */
static bool deliver_next(struct direction *direction, int64_t until,
			 struct journey_draft *draft)
{
	int64_t bound;

	direction->has_done = direction->has_done || find_start(direction);
	if (!direction->has_done || direction->done >= until)
		return false;
	move_on(direction);
	bound = min_i64(find_bound(direction), until);
	if (bound == INT64_MAX)
		return false;
	deliver_range(direction, min_i64(bound, direction->done + UINT32_MAX),
		      draft);
	return true;
}

void direction_deliver(struct direction *direction, int64_t until,
		       struct journey_draft *draft)
{
	while (deliver_next(direction, until, draft))
		;
	if (direction->has_done)
		move_on(direction);
	journey_draft_flush(draft);
}

void direction_deliver_all(struct direction *direction,
			   struct journey_draft *draft)
{
	if (direction->has_end)
		direction_deliver(direction, direction->end, draft);
}

void direction_forward(struct direction *direction, struct journey_draft *draft)
{
	if (direction->ends.has_sender || direction->ends.has_receiver ||
	    !direction->has_end)
		return;
	if (direction->has_mark &&
	    direction->now_ns - direction->mark_ns < JOURNEY_FORWARDED_NS)
		return;
	if (direction->has_mark)
		direction_deliver(direction, direction->mark, draft);
	direction->mark = direction->end;
	direction->mark_ns = direction->now_ns;
	direction->has_mark = true;
}

static uint32_t count_taken(const struct direction *direction)
{
	return direction->pending.n + direction->n_active + direction->n_listed;
}

/* Deliver until @most events are left, or the rest is not known to be in the stream. */
static void deliver_early(struct direction *direction, uint32_t most,
			  struct journey_draft *draft)
{
	draft->is_early = true;
	while (count_taken(direction) > most &&
	       deliver_next(direction, direction->end, draft))
		move_on(direction);
	journey_draft_flush(draft);
	draft->is_early = false;
}

void direction_limit(struct direction *direction, struct journey_draft *draft)
{
	if (count_taken(direction) > JOURNEY_HELD_MAX)
		deliver_early(direction, JOURNEY_HELD_MAX / 4 * 3, draft);
}

void direction_halve(struct direction *direction, struct journey_draft *draft)
{
	if (direction->has_end)
		deliver_early(direction, count_taken(direction) / 2, draft);
}

void direction_clear(struct direction *direction)
{
	for (uint32_t i = 0; i < direction->n_active; i++)
		journey_event_free(direction->active[i]);
	free(direction->active);
	while (!TAILQ_EMPTY(&direction->sends))
		journey_event_free(pop_first(direction, &direction->sends));
	while (!TAILQ_EMPTY(&direction->sents))
		journey_event_free(pop_first(direction, &direction->sents));
	for (uint32_t i = 0; i < direction->pending.n; i++)
		journey_event_free(direction->pending.items[i].event);
	free(direction->pending.items);
	if (direction->copied != direction->called)
		journey_event_free(direction->copied);
	journey_event_free(direction->called);
	*direction = (struct direction){ 0 };
}
