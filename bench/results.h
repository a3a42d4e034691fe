/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The results of the datapath benchmark: a cell for each case and design. */
#ifndef NETOBS_BENCH_RESULTS_H
#define NETOBS_BENCH_RESULTS_H

#include "bench.h"
#include "design.h"
#include "report.h"
#include "rounds.h"

struct cell {
	int design;
	uint32_t flows;
	enum traffic traffic;
	enum direction direction;
	enum order order;
	enum sharing sharing;
	uint32_t n_cpus;
	double *samples; /* ns per packet, one per round */

	/* Of --live, or REPORT_UNKNOWN. */
	uint64_t sent; /* packets, by the interface's counters, filling included */
	uint64_t counted; /* by the store, if it counts */

	uint64_t kernel_bytes; /* of its maps */

	/* As of results_settle_case(). */
	const char *store, *distribution, *shared, *traffic_name, *way;
	uint32_t n;	       /* rounds */
	struct interval ratio; /* of rates, to that of the empty program */
	struct summary ns;
	double over_empty;
};

struct results {
	struct rounds rounds;
	uint32_t n_cells;
	uint32_t capacity;
	struct cell *cells; /* by case, then by design: the empty program first */
};

/* Add a cell without samples. Returns 0 or -ENOMEM. */
int results_add(struct results *results, const struct cell *cell);
void results_clear(struct results *results);

/* Whether all but the design is alike. */
bool results_is_same_case(const struct cell *a, const struct cell *b);

/*
 * Sum up @n rounds of a case, which are the @n_cells from @cells on. Returns whether all ratios
 * are known well enough; those that are not are reported if the round @is_last.
 */
bool results_settle_case(const struct results *results, struct cell *cells,
			 uint32_t n_cells, uint32_t n, bool is_last);

struct report results_report(const struct results *results);

#endif
