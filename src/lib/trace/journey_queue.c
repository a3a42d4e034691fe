// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "journey_state.h"

#include "base/util.h"

enum { FIRST_ITEMS = 64 };

bool journey_queue_reserve(struct journey_queue *queue, uint32_t n)
{
	while (queue->capacity < n)
		if (!array_reserve(&queue->items, queue->capacity,
				   &queue->capacity, sizeof(*queue->items),
				   FIRST_ITEMS))
			return false;
	return true;
}

static bool is_before(const struct journey_queue_item *a,
		      const struct journey_queue_item *b)
{
	return a->key != b->key ? a->key < b->key : a->event->id < b->event->id;
}

static void swap_items(struct journey_queue *queue, uint32_t i, uint32_t j)
{
	const struct journey_queue_item item = queue->items[i];

	queue->items[i] = queue->items[j];
	queue->items[j] = item;
}

static void lift_item(struct journey_queue *queue, uint32_t i)
{
	for (; i; i = (i - 1) / 2) {
		if (!is_before(&queue->items[i], &queue->items[(i - 1) / 2]))
			return;
		swap_items(queue, i, (i - 1) / 2);
	}
}

static void sink_item(struct journey_queue *queue, uint32_t i)
{
	for (uint32_t child; (child = 2 * i + 1) < queue->n; i = child) {
		if (child + 1 < queue->n &&
		    is_before(&queue->items[child + 1], &queue->items[child]))
			child++;
		if (!is_before(&queue->items[child], &queue->items[i]))
			return;
		swap_items(queue, i, child);
	}
}

void journey_queue_push(struct journey_queue *queue, int64_t key,
			struct journey_event *event)
{
	queue->items[queue->n] = (struct journey_queue_item){ key, event };
	lift_item(queue, queue->n++);
}

struct journey_event *journey_queue_pop(struct journey_queue *queue)
{
	struct journey_event *event;

	if (!queue->n)
		return NULL;
	event = queue->items[0].event;
	queue->items[0] = queue->items[--queue->n];
	sink_item(queue, 0);
	return event;
}

void journey_queue_remove(struct journey_queue *queue,
			  const struct direction *direction,
			  void (*each)(struct journey_event *event, void *ctx),
			  void *ctx)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < queue->n; i++) {
		if (queue->items[i].event->direction == direction)
			each(queue->items[i].event, ctx);
		else
			queue->items[n++] = queue->items[i];
	}
	queue->n = n;
	for (uint32_t i = n / 2; i--;)
		sink_item(queue, i);
}
