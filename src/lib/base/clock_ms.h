/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Clocks in milliseconds, and times to be called at: of CLOCK_MONOTONIC, 0 is never.
 * Time that is left is as sink_host_ops.wake_in() has it: -1 is forever.
 */
#ifndef NETOBS_BASE_CLOCK_MS_H
#define NETOBS_BASE_CLOCK_MS_H

#include "util.h"

#include <limits.h>
#include <time.h>

/* A clock of clock_gettime(2). */
static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

static inline int64_t clock_ms(clockid_t clock)
{
	return clock_ns(clock) / NSEC_PER_MSEC;
}

static inline int64_t now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

static inline int left_ms(int64_t at_ms)
{
	int64_t left = at_ms - now_ms();

	return left < 0 ? 0 : (int)min_u64((uint64_t)left, INT_MAX);
}

/* @return milliseconds left until @at_ms; -1: @at_ms is 0, there is no such time */
static inline int until_ms(int64_t at_ms)
{
	return at_ms ? left_ms(at_ms) : -1;
}

static inline int sooner_ms(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

#endif
