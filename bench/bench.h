/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What all benchmarks share: their end, what they say meanwhile, sums of rounds. */
#ifndef NETOBS_BENCH_BENCH_H
#define NETOBS_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* SIGINT, SIGTERM and SIGHUP end a benchmark early; a second one at once. */
void stop_catch(void);
bool stop_requested(void);

int64_t clock_ns(clockid_t clock);

/* The piece of work at hand, on standard error if that is a terminal; NULL: none any more. */
void progress_show(const char *text);

/* Report why @what failed, unless the user has stopped it. Returns @err. */
int failure_report(const char *what, int err);

struct summary {
	double median, min, max;
};

/* Sorts @samples, of which there is at least one. */
struct summary summarize(double *samples, uint32_t n);

#endif
