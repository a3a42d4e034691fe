/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "bench.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>

enum {
	RUN = 10, /* rounds; fewer are too short to see what others take */
	REPEATS_MOST =
		5, /* runs, if there may be so many; more are this host's own */
};

/* A run from round @first on. What others took meanwhile goes to @ret_others. */
static int measure_run(const struct rounds_work *work, uint32_t first,
		       uint32_t n, double *ret_others)
{
	double before = others_cpu_seconds();
	int64_t start = clock_ns(CLOCK_MONOTONIC);
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i++)
		err = work->measure(work->user, first + i);
	*ret_others = (others_cpu_seconds() - before) * NSEC_PER_SEC /
		      (clock_ns(CLOCK_MONOTONIC) - start);
	return err;
}

int rounds_measure(struct rounds *rounds, const struct rounds_work *work,
		   uint32_t *ret_n)
{
	uint32_t n = 0, repeats = min_u64(REPEATS_MOST, rounds->most / RUN);
	bool is_settled = false;

	while (n < rounds->most && !is_settled) {
		uint32_t run = min_u64(RUN, rounds->most - n);
		double others;
		int err = measure_run(work, n, run, &others);

		if (err)
			return err;
		if (others > OTHERS_MOST && rounds->repeated < repeats) {
			rounds->repeated++;
			continue;
		}
		n += run;
		if (others > rounds->others)
			rounds->others = others;
		if (interval_decides(n, rounds->most))
			is_settled = work->is_settled(work->user, n,
						      n == rounds->most);
	}
	if (n > rounds->n)
		rounds->n = n;
	*ret_n = n;
	if (is_settled)
		return 0;
	fprintf(stderr,
		"netobsctl bench: others took up to %.1f %% of a CPU, %u runs were repeated\n",
		100 * rounds->others, rounds->repeated);
	return -ERANGE;
}

bool rounds_compare(const struct rounds *rounds, const double *base,
		    const double *values, uint32_t n, const char *what,
		    struct interval *ret_ratio)
{
	cleanup_free double *ratios = calloc(n, sizeof(*ratios));
	bool is_narrow;

	for (uint32_t i = 0; ratios && i < n; i++)
		ratios[i] = base[i] / values[i];
	if (ratios)
		*ret_ratio = interval_of(ratios, n);
	is_narrow = ratios && interval_is_narrow(ret_ratio, rounds->width);
	if (is_narrow || !what)
		return is_narrow;
	progress_show(NULL);
	fprintf(stderr,
		"netobsctl bench: this host is too noisy: after %u rounds, the ratio of %s is "
		"between %.3f and %.3f, an interval of %.3f; below %g is needed\n",
		n, what, ret_ratio->low, ret_ratio->high,
		ret_ratio->high - ret_ratio->low, rounds->width);
	return false;
}

void rounds_print(const struct rounds *rounds)
{
	printf("in random order, intervals of 95 %% below %g; others took up to %.1f %% of a CPU, "
	       "%u runs were repeated\n",
	       rounds->width, 100 * rounds->others, rounds->repeated);
}
