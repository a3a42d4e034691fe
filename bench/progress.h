/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A bar on standard error, when that is a terminal. */
#ifndef NETOBS_BENCH_PROGRESS_H
#define NETOBS_BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool is_shown;
	double total; /* in whatever unit the work is estimated */
	double done;
	int64_t start_ns;
};

void progress_begin(struct progress *progress, double total);

/* @text: what comes next. */
void progress_show(const struct progress *progress, const char *text);

static inline void progress_add(struct progress *progress, double work)
{
	progress->done += work;
}

/* Take it away, also to print something else. */
void progress_clear(const struct progress *progress);

#endif
