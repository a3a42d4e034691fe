/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Random events of a tracer, which arrive out of order, as those of several CPUs do. */
#ifndef TESTS_TRACE_RANDOM_EVENTS_H
#define TESTS_TRACE_RANDOM_EVENTS_H

#include "lib_seed.h"
#include "lib_test.h"

#include <netobs/trace.h>

#define START_NS 1700000000000000000LL

enum { US = 1000, MS = 1000 * US };

struct timed {
	struct netobs_trace_event event;
	int64_t arrives_ns;
};

static inline bool one_in(uint32_t n)
{
	return !test_below(n);
}

/* Hardly ever the same twice. */
static inline int64_t some_us(uint32_t n)
{
	return US + test_below(n * US);
}

static inline int compare_arrivals(const void *a, const void *b)
{
	const struct timed *one = a, *two = b;

	return (one->arrives_ns > two->arrives_ns) -
	       (one->arrives_ns < two->arrives_ns);
}

static inline void sort_by_arrival(struct timed *events, uint32_t n)
{
	qsort(events, n, sizeof(*events), compare_arrivals);
}

#endif
