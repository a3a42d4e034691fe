/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* How often subjects take turns: until all ratios are known, or this host is too noisy. */
#ifndef NETOBS_BENCH_ROUNDS_H
#define NETOBS_BENCH_ROUNDS_H

#include "interval.h"

struct rounds {
	double width;  /* that intervals shall be below */
	uint32_t most; /* rounds of a case */

	/* All cases so far. */
	uint32_t n;	   /* rounds of the longest one */
	uint32_t repeated; /* runs, because others were too busy */
	double others; /* the largest share of a CPU that they took in a run that counts */
};

struct rounds_work {
	/* Have each subject take its turn, as round @round: again, if it was measured before. */
	int (*measure)(void *user, uint32_t round);
	/* Whether all ratios of @n rounds are known well enough; @is_last: report those that are not. */
	bool (*is_settled)(void *user, uint32_t n, bool is_last);
	void *user;
};

/**
 * Measure a case.
 *
 * @param ret_n  its rounds
 * @return 0; -ERANGE: this host is too noisy, which is reported; or another -errno
 */
int rounds_measure(struct rounds *rounds, const struct rounds_work *work,
		   uint32_t *ret_n);

/* Report a ratio that is known too badly. @what: "netobs, 1000 flows". */
void rounds_report_noise(const struct rounds *rounds, const char *what,
			 const struct interval *interval, uint32_t n);

/* "intervals below ...; others took ...", a line for people. */
void rounds_print(const struct rounds *rounds);

#endif
