/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Netfilter's hooks in journeys. They are steps, but no part of a journey's time begins there: the
 * parts are equal whether hooks are seen or not.
 */
#ifndef NETOBS_TRACE_JOURNEY_HOOKS_H
#define NETOBS_TRACE_JOURNEY_HOOKS_H

#include "journey_event.h"
#include "journey_parts.h"
#include "journey_way.h"

/** Assign each event at a hook to its attempt, if that is known; after journey_way_find(). */
void journey_hooks_join(const struct journey_way *way);

/** Fill netfilter_ns, and its bit of record.has. */
void journey_hooks_fill(const struct journey_route *route,
			struct netobs_journey *journey);

#endif
