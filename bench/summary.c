/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "summary.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct summary summarize(double *samples, uint32_t n)
{
	qsort(samples, n, sizeof(double), compare);
	return (struct summary){
		.median = (samples[(n - 1) / 2] + samples[n / 2]) / 2,
		.min = samples[0],
		.max = samples[n - 1],
	};
}
