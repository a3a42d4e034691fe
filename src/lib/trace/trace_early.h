/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Events during netobs_trace_start(), which wait: only netobs_trace_dispatch() calls callbacks. */
#ifndef NETOBS_TRACE_TRACE_EARLY_H
#define NETOBS_TRACE_TRACE_EARLY_H

#include <netobs/trace.h>
#include <stdbool.h>
#include <stdint.h>

enum { TRACE_EARLY_MAX = 1 << 16 };

struct trace_early {
	struct netobs_trace_event *events;
	uint32_t n, capacity;
};

/** Keep a copy. @return false: there are TRACE_EARLY_MAX, or there is no memory */
bool trace_early_keep(struct trace_early *early,
		      const struct netobs_trace_event *event);

/** Call @deliver for each event, in the order of arrival, and remove all. */
void trace_early_deliver(struct trace_early *early,
			 void (*deliver)(void *ctx,
					 const struct netobs_trace_event *event),
			 void *ctx);

void trace_early_free(struct trace_early *early);

#endif
