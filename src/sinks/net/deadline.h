/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Times to be called at, where a module has but one: the soonest of them. */
#ifndef NETOBS_SINKS_NET_DEADLINE_H
#define NETOBS_SINKS_NET_DEADLINE_H

#include "base/clock_ms.h"

#include <limits.h>
#include <stdint.h>

static inline int64_t now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

/* As sink_host_ops.wake_in() has it: -1 is never. */
static inline int sooner_ms(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int left_ms(int64_t at_ms)
{
	int64_t left = at_ms - now_ms();

	return left < 0 ? 0 : (int)min_u64((uint64_t)left, INT_MAX);
}

#endif
