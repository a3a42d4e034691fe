/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Many rounds in few numbers. */
#ifndef NETOBS_BENCH_SUMMARY_H
#define NETOBS_BENCH_SUMMARY_H

#include <stdint.h>

struct summary {
	double median, min, max;
};

/* Sorts @samples, of which there is at least one. */
struct summary summarize(double *samples, uint32_t n);

#endif
