/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The results of the datapath benchmark: a cell for each case and design. */
#ifndef NETOBS_BENCH_RESULTS_H
#define NETOBS_BENCH_RESULTS_H

#include "runner.h"
#include "bench.h"

struct cell {
	int design;
	uint32_t flows;
	enum order order;

	uint64_t sent;	/* packets, of the last programs that were loaded */
	double counted; /* of these by the store; NAN: it counts none */

	/* As of results_settle_case(). */
	uint32_t n;	       /* rounds */
	struct interval ratio; /* of rates, to that of the empty program */
	double ns, over_empty;
};

struct results {
	struct rounds rounds;
	uint32_t n_cells;
	struct cell *cells; /* by case, then by design: the empty program first */
};

/*
 * Sum up @n rounds of a case, which are the @n_cells from @cells on, of which @samples has the
 * ns per packet. Returns whether all ratios are known well enough; those that are not are
 * reported if the round @is_last.
 */
bool results_settle_case(const struct results *results, struct cell *cells,
			 double *const *samples, uint32_t n_cells, uint32_t n,
			 bool is_last);

void results_print(const struct results *results, bool is_json);

#endif
