// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_state.h"

#include "base/util.h"

#include <stdlib.h>

enum { FIRST_EVENTS = 64 };

bool trace_early_keep(struct trace_early *early,
		      const struct netobs_trace_event *event)
{
	if (early->n >= TRACE_EARLY_MAX ||
	    !array_reserve(&early->events, early->n, &early->capacity,
			   sizeof(*event), FIRST_EVENTS))
		return false;
	early->events[early->n++] = *event;
	return true;
}

void trace_early_deliver(struct trace_early *early,
			 void (*deliver)(void *ctx,
					 const struct netobs_trace_event *event),
			 void *ctx)
{
	struct trace_early all = *early;

	*early = (struct trace_early){ 0 };
	for (uint32_t i = 0; i < all.n; i++)
		deliver(ctx, &all.events[i]);
	trace_early_free(&all);
}

void trace_early_free(struct trace_early *early)
{
	free(early->events);
	*early = (struct trace_early){ 0 };
}
