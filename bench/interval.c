/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "bench.h"

#include <math.h>
#include <stdlib.h>

/* Of the values, on each side: that the median is beyond the interval there. */
#define TAIL 0.0125

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* ln P(B = k), where B of @n values are below the median. */
static double log_chance(uint32_t n, uint32_t k)
{
	return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0) -
	       n * log(2);
}

/* The most values that can be left out at each end: P(B < that) is @TAIL at most. */
static uint32_t count_outside(uint32_t n)
{
	double below = exp(log_chance(n, 0));
	uint32_t k = 0;

	while (below <= TAIL) {
		k++;
		below += exp(log_chance(n, k));
	}
	return k;
}

struct interval interval_of(double *values, uint32_t n)
{
	uint32_t outside = count_outside(n);

	qsort(values, n, sizeof(*values), compare_values);
	return (struct interval){
		.median = (values[(n - 1) / 2] + values[n / 2]) / 2,
		.low = outside ? values[outside - 1] : -INFINITY,
		.high = outside ? values[n - outside] : INFINITY,
	};
}

bool interval_is_narrow(const struct interval *interval, double width)
{
	return interval->high - interval->low < width;
}

bool interval_decides(uint32_t n, uint32_t most)
{
	return n >= INTERVAL_ENOUGH || n >= most;
}
