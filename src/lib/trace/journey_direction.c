// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "journey_state.h"

#include "base/util.h"

enum { FIRST_EVENTS = 32 };

/* ---- Lists ------------------------------------------------------------------------------- */

/* Reserve twice the room, so that items are seldom moved to the beginning. */
static bool list_reserve(struct journey_list *list, uint32_t n)
{
	while (list->capacity < 2 * n)
		if (!array_reserve(&list->items, list->capacity, &list->capacity,
				   sizeof(*list->items), FIRST_EVENTS))
			return false;
	return true;
}

static struct journey_event *list_at(const struct journey_list *list, uint32_t i)
{
	return list->items[list->head + i];
}

static struct journey_event *list_first(const struct journey_list *list)
{
	return list->n ? list_at(list, 0) : NULL;
}

static struct journey_event *list_pop(struct journey_list *list)
{
	list->n--;
	return list->items[list->head++];
}

/* Make room for an item at the end. */
static void list_extend(struct journey_list *list)
{
	if (list->head + list->n == list->capacity) {
		memmove(list->items, list->items + list->head,
			list->n * sizeof(*list->items));
		list->head = 0;
	}
	list->n++;
}

static void list_insert_by_offset(struct journey_list *list,
				  struct journey_event *event)
{
	uint32_t i;

	list_extend(list);
	for (i = list->n - 1; i && list_at(list, i - 1)->offset > event->offset;
	     i--)
		list->items[list->head + i] = list_at(list, i - 1);
	list->items[list->head + i] = event;
}

static bool is_later(const struct journey_event *a, const struct journey_event *b)
{
	return a->step.time_ns != b->step.time_ns ?
		       a->step.time_ns > b->step.time_ns :
		       a->id > b->id;
}

static void list_insert_by_time(struct journey_list *list,
				struct journey_event *event)
{
	uint32_t i;

	list_extend(list);
	for (i = list->n - 1; i && is_later(list_at(list, i - 1), event); i--)
		list->items[list->head + i] = list_at(list, i - 1);
	list->items[list->head + i] = event;
}

/* ---- Events ------------------------------------------------------------------------------ */

int direction_reserve(struct direction *direction)
{
	const uint32_t n = direction->n_held + 2;

	return journey_queue_reserve(&direction->pending, n) &&
			       list_reserve(&direction->active, n) &&
			       list_reserve(&direction->sends, n) &&
			       list_reserve(&direction->sents, n) ?
		       0 :
		       -ENOMEM;
}

static void drop_event(struct direction *direction, struct journey_event *event)
{
	if (!event)
		return;
	if (direction->last_call == event)
		direction->last_call = NULL;
	direction->n_held--;
	--*direction->n_held_by_all;
	free(event);
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
	list_insert_by_offset(&direction->sends, event);
}

static void take_sent(struct direction *direction, struct journey_event *event)
{
	struct journey_event *call = direction->last_call;

	if (call && event->end > call->offset) {
		call->ends_call = true;
		call->end = min_i64(call->end, event->end);
	}
	list_insert_by_offset(&direction->sents, event);
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
		drop_event(direction, event);
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

/* Of each call, the first SEND and the last one are kept. */
static void pass_send(struct direction *direction, struct journey_event *event)
{
	if (direction->copied != direction->called)
		drop_event(direction, direction->copied);
	if (event->begins_call || !direction->called) {
		drop_event(direction, direction->called);
		direction->called = event;
	}
	direction->copied = event;
}

static void remove_ended(struct direction *direction)
{
	struct journey_list *active = &direction->active;
	uint32_t n = 0;

	for (uint32_t i = 0; i < active->n; i++) {
		struct journey_event *event = list_at(active, i);

		if (event->end <= direction->done)
			drop_event(direction, event);
		else
			active->items[n++] = event;
	}
	active->head = 0;
	active->n = n;
}

/* Leave out events in the middle of bytes that pass too many points. */
static void cut_active(struct direction *direction)
{
	struct journey_list *active = &direction->active;
	struct journey_event **middle =
		active->items + active->head + active->n / 2;

	direction->cut_until = max_i64(direction->cut_until, (*middle)->end);
	drop_event(direction, *middle);
	active->n--;
	memmove(middle, middle + 1,
		(size_t)(active->items + active->head + active->n - middle) *
			sizeof(*middle));
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
			drop_event(direction, event);
			continue;
		}
		list_insert_by_time(&direction->active, event);
		if (direction->active.n > JOURNEY_EVENTS_MAX)
			cut_active(direction);
	}
	while (direction->sends.n && list_first(&direction->sends)->offset <= done)
		pass_send(direction, list_pop(&direction->sends));
	while (direction->sents.n && list_first(&direction->sents)->end <= done)
		drop_event(direction, list_pop(&direction->sents));
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

	for (uint32_t i = 0; i < direction->active.n; i++)
		bound = min_i64(bound, list_at(&direction->active, i)->end);
	if (direction->pending.n)
		bound = min_i64(bound, direction->pending.items[0].key);
	if (direction->sends.n)
		bound = min_i64(bound, list_first(&direction->sends)->offset);
	bound = next_bound(bound, direction, list_first(&direction->sents));
	return next_bound(bound, direction, direction->called);
}

static void deliver_range(struct direction *direction, int64_t end,
			  struct journey_draft *draft)
{
	const struct journey_event *sent = list_first(&direction->sents);
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
			.events = direction->active.items + direction->active.head,
			.n = direction->active.n,
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
	if (direction->sends.n)
		start = min_i64(start, list_first(&direction->sends)->offset);
	if (direction->sents.n)
		start = min_i64(start, list_first(&direction->sents)->offset);
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
	return direction->pending.n + direction->active.n + direction->sends.n +
	       direction->sents.n;
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

static uint32_t count_held(const struct direction *direction)
{
	return count_taken(direction) + !!direction->called +
	       (direction->copied && direction->copied != direction->called);
}

static void list_clear(struct journey_list *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		free(list_at(list, i));
	free(list->items);
	*list = (struct journey_list){ 0 };
}

void direction_clear(struct direction *direction)
{
	*direction->n_held_by_all -= count_held(direction);
	list_clear(&direction->active);
	list_clear(&direction->sends);
	list_clear(&direction->sents);
	for (uint32_t i = 0; i < direction->pending.n; i++)
		free(direction->pending.items[i].event);
	free(direction->pending.items);
	if (direction->copied != direction->called)
		free(direction->copied);
	free(direction->called);
	*direction = (struct direction){ 0 };
}
