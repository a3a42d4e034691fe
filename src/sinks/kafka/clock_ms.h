/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef NETOBS_SINKS_KAFKA_CLOCK_MS_H
#define NETOBS_SINKS_KAFKA_CLOCK_MS_H

#include "util.h"

#include <time.h>

static inline int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / NSEC_PER_MSEC;
}

#endif
