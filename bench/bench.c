/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "bench.h"

#include "interval.h"
#include "base/util.h"

#include <signal.h>
#include <stdio.h>

/* ---- The end --------------------------------------------------------------- */

static volatile sig_atomic_t requested;

static void on_signal(int number)
{
	(void)number;
	requested = 1;
}

void stop_catch(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = on_signal,
					  .sa_flags = SA_RESETHAND };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		struct sigaction before;

		/* nohup(1) asks for it to be ignored. */
		if (!sigaction(numbers[i], NULL, &before) &&
		    before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
}

bool stop_requested(void)
{
	return requested;
}

int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

/* ---- Progress -------------------------------------------------------------- */

enum { BAR = 30 };

void progress_begin(struct progress *progress, double total)
{
	*progress = (struct progress){
		.is_shown = isatty(STDERR_FILENO),
		.total = total,
		.start_ns = clock_ns(CLOCK_MONOTONIC),
	};
}

void progress_show(const struct progress *progress, const char *text)
{
	static const char full[] = "##############################";
	double share = progress->done / progress->total;
	double passed = (clock_ns(CLOCK_MONOTONIC) - progress->start_ns) / 1e9;

	if (!progress->is_shown)
		return;
	if (share > 1)
		share = 1;
	fprintf(stderr, "\r\033[K[%-*.*s] %3.0f %%  %s", BAR,
		(int)(share * BAR), full, share * 100, text);
	if (share > 0.02)
		fprintf(stderr, ", %.0f s left", passed / share - passed);
	fflush(stderr);
}

void progress_clear(const struct progress *progress)
{
	if (progress->is_shown)
		fputs("\r\033[K", stderr);
}

/* ---- Sums ------------------------------------------------------------------ */

struct summary summarize(double *samples, uint32_t n)
{
	const struct interval interval = interval_of(samples, n);

	return (struct summary){
		.median = interval.median,
		.min = samples[0],
		.max = samples[n - 1],
	};
}
