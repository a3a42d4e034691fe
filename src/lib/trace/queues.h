/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records of queues: what left queueing disciplines while packets of traced connections waited in them, each
 * quarter of a second about, and what arrived at uplinks in the 10 ms before packets of chosen connections, each
 * tenth of a second.
 */
#ifndef NETOBS_TRACE_QUEUES_H
#define NETOBS_TRACE_QUEUES_H

#include "base/clock.h"
#include "trace_programs.h"

#include <netobs/trace.h>
#include <netobs/turn.h>
#include <stdbool.h>
#include <stdint.h>

struct queues;

/* @queue: without container_id of the shares, which the function sets */
typedef void queue_record_fn(struct netobs_queue *queue, void *ctx);

/**
 * @param programs  open, with knobs.wants_queues; they and @clock stay as long as it is open
 * @return 0, or -errno
 */
int queues_open(const struct trace_programs *programs, const struct clock *clock,
		queue_record_fn *on_queue, void *ctx, struct queues **ret_queues);

/** This is an interface between this host and others; of more than UPLINKS, those that were noted last are watched. */
void queues_note_uplink(struct queues *queues, uint32_t netns, uint32_t ifindex,
			const char name[16]);

/** @return whether it was noted as an uplink, and not long ago */
bool queues_is_uplink(const struct queues *queues, uint32_t netns,
		      uint32_t ifindex);

/** Note an event of a chosen connection, at @boot_ns. */
void queues_note(struct queues *queues, const struct netobs_trace_event *event,
		 int64_t boot_ns);

/** Make the records that are due. */
void queues_sweep(struct queues *queues, int64_t now_ns);

/** Free it. NULL is fine. */
void queues_close(struct queues *queues);

#endif
