/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The processes that send the flows of queues. */
#ifndef NETOBS_TRACE_QUEUE_OWNERS_H
#define NETOBS_TRACE_QUEUE_OWNERS_H

#include "base/slots.h"
#include "bpf/queues.h"
#include "trace_programs.h"

#include <netobs/turn.h>
#include <stdint.h>

/* Zeroes: none is known. */
struct queue_owners {
	struct slots flows;	     /* those that have been asked for */
	struct queue_owner *sockets; /* at the last look at all processes */
	uint32_t n, capacity;
	int64_t looked_ns; /* CLOCK_BOOTTIME */
};

/**
 * Set the process of a share, if it is known. All open sockets are listed for that, once a second at most. What has
 * been found stays, also once the process has ended.
 *
 * @param id  of the flow
 */
void queue_owners_name(struct queue_owners *owners,
		       const struct trace_programs *programs, uint32_t id,
		       const struct queue_sender *sender,
		       struct netobs_queue_share *share);

void queue_owners_free(struct queue_owners *owners);

#endif
