/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A clock of clock_gettime(2), in milliseconds. */
#ifndef NETOBS_BASE_CLOCK_MS_H
#define NETOBS_BASE_CLOCK_MS_H

#include "util.h"

#include <time.h>

static inline int64_t clock_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / NSEC_PER_MSEC;
}

#endif
