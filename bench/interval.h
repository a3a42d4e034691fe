/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * How exactly a ratio is known: the one estimator of all comparisons. The ratio is the median
 * of one value per round, in which both sides had their turns next to each other. Its interval
 * lies between two order statistics (the binomial interval), which assumes nothing about the
 * distribution of values but that rounds do not depend on each other.
 *
 * Rounds go on until the interval is narrow, and stopping then prefers values that happen to
 * be close to each other. So the interval is that of 97.5 %, and contains the median of the
 * distribution in 95 % of comparisons (unit.bench_interval).
 */
#ifndef NETOBS_BENCH_INTERVAL_H
#define NETOBS_BENCH_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

enum {
	INTERVAL_LEAST = 7,   /* values; fewer have no interval */
	INTERVAL_ENOUGH = 20, /* before the width decides anything */
};

/* Wider ones are not published. */
#define INTERVAL_WIDTH 0.02

struct interval {
	double median, low, high; /* -INFINITY, INFINITY: too few values */
};

/* Sorts @values, of which there is at least one. */
struct interval interval_of(double *values, uint32_t n);

/* Whether the width decides after @n rounds, of @most, if there are more. */
bool interval_decides(uint32_t n, uint32_t most);

/* Whether it may be published. */
bool interval_is_narrow(const struct interval *interval, double width);

#endif
