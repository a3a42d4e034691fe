/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Netfilter's hooks on the way of bytes. They are steps beside the others, and no place where a part begins:
 * parts are the same whether hooks are seen or not.
 */
#ifndef NETOBS_TRACE_JOURNEY_HOOKS_H
#define NETOBS_TRACE_JOURNEY_HOOKS_H

#include "journey_event.h"
#include "journey_parts.h"
#include "journey_way.h"

/** Give each event at a hook the attempt that it is of, if that is known. The way is found. */
void journey_hooks_join(const struct journey_way *way);

/** Fill netfilter_ns, and its bit of record.has. */
void journey_hooks_fill(const struct journey_route *route,
			struct netobs_journey *journey);

#endif
