/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What all benchmarks share: their end, their progress, sums of rounds. */
#ifndef NETOBS_BENCH_BENCH_H
#define NETOBS_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* SIGINT, SIGTERM and SIGHUP end a benchmark early; a second one at once. */
void stop_catch(void);
bool stop_requested(void);

int64_t clock_ns(clockid_t clock);

/* A bar on standard error, if that is a terminal. */
struct progress {
	bool is_shown;
	double total; /* in the unit in which the work is estimated */
	double done;
	int64_t start_ns;
};

void progress_begin(struct progress *progress, double total);

/* @text: the next piece of work. */
void progress_show(const struct progress *progress, const char *text);

static inline void progress_add(struct progress *progress, double work)
{
	progress->done += work;
}

/* Remove the bar, also to print something else. */
void progress_clear(const struct progress *progress);

struct summary {
	double median, min, max;
};

/* Sorts @samples, of which there is at least one. */
struct summary summarize(double *samples, uint32_t n);

#endif
