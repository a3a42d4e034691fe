/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Events ordered by a key, and by arrival if keys are equal: a binary heap. */
#ifndef NETOBS_TRACE_JOURNEY_QUEUE_H
#define NETOBS_TRACE_JOURNEY_QUEUE_H

#include "journey_event.h"

struct journey_queue_item {
	int64_t key;
	struct journey_event *event;
};

struct journey_queue {
	struct journey_queue_item *items; /* the least is the first */
	uint32_t n, capacity;
};

/** Make room for @n items. @return false: no memory */
bool journey_queue_reserve(struct journey_queue *queue, uint32_t n);

/** Add an event; journey_queue_reserve() has made room. */
void journey_queue_push(struct journey_queue *queue, int64_t key,
			struct journey_event *event);

/** @return the event of the least key; NULL: none is left */
struct journey_event *journey_queue_pop(struct journey_queue *queue);

/** Take out the events of @direction, in any order; @each owns them. */
void journey_queue_remove(struct journey_queue *queue,
			  const struct direction *direction,
			  void (*each)(struct journey_event *event, void *ctx),
			  void *ctx);

#endif
