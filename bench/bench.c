/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "bench.h"

#include "base/util.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* ---- Words ----------------------------------------------------------------- */

void progress_show(const char *text)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s", text ?: "");
}

int failure_report(const char *what, int err)
{
	if (!err || err == -EINTR)
		return err;
	progress_show(NULL);
	fprintf(stderr, "netobsctl bench: %s: %s%s\n", what, strerror(-err),
		err == -EPERM ?
			": run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON" :
			"");
	return err;
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
