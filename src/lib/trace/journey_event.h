/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef NETOBS_TRACE_JOURNEY_EVENT_H
#define NETOBS_TRACE_JOURNEY_EVENT_H

#include <netinet/in.h>
#include <netobs/trace.h>
#include <stdbool.h>
#include <stdint.h>

struct direction;

/* An event, kept until its bytes are delivered. */
struct journey_event {
	struct netobs_journey_step step; /* its attempt is not used */
	int64_t offset, end;		 /* of the bytes */
	uint64_t id;			 /* in order of arrival */
	uint64_t buffer;
	struct direction *direction;
	int64_t call_end; /* NETOBS_TRACE_SEND: the end of the bytes that the call was to write */
	uint64_t socket; /* of datagrams, as the next members */
	uint32_t ip_id, seq;
	bool is_fragment;
	uint8_t protocol;
	uint32_t reason; /* of drops */
	bool begins_call;
	bool ends_call;	  /* the call has returned */
	uint16_t attempt; /* of the current bytes: journey_draft.h */
};

static inline bool journey_same_interface(const struct journey_event *a,
					  const struct journey_event *b)
{
	return a->step.ifindex == b->step.ifindex &&
	       a->step.netns_inode == b->step.netns_inode;
}

static inline bool journey_is_datagram(const struct journey_event *event)
{
	return event->protocol && event->protocol != IPPROTO_TCP;
}

static inline bool journey_is_hook(const struct journey_event *event)
{
	return event->step.point >= NETOBS_TRACE_PREROUTING &&
	       event->step.point <= NETOBS_TRACE_POSTROUTING_END;
}

static inline bool journey_is_arrival(const struct journey_event *event)
{
	return event->step.point == NETOBS_TRACE_ARRIVE ||
	       event->step.point == NETOBS_TRACE_RECEIVE;
}

/* Events ordered by a key, and by arrival if keys are equal: a binary heap. */

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
