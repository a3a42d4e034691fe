/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the datapath benchmark finds: a cell for each case. */
#ifndef NETOBS_BENCH_RESULTS_H
#define NETOBS_BENCH_RESULTS_H

#include "design.h"
#include "host.h"
#include "summary.h"

#include <stdio.h>

struct cell {
	int design;
	uint32_t flows;
	enum order order;
	enum sharing sharing;
	uint32_t n_cpus;
	uint32_t n_samples;
	double *samples; /* ns per packet, one per round */

	/* As of results_sum_up(). */
	struct summary ns;
	double over_empty;
};

struct results {
	struct machine host;
	uint32_t rounds;
	uint32_t n_cells;
	uint32_t capacity;
	struct cell *cells; /* by flows, then design, then case */
};

/* Add a cell without samples. Returns 0 or -ENOMEM. */
int results_add(struct results *results, const struct cell *cell);

void results_sum_up(struct results *results);
void results_clear(struct results *results);

/* The cell that was measured, or NULL. */
const struct cell *results_find(const struct results *results,
				const struct cell *like);

const char *order_name(enum order order);
const char *sharing_name(enum sharing sharing);

/* Each returns 0 or -errno. */
int results_print_table(const struct results *results, FILE *file);
int results_print_json(const struct results *results, FILE *file);
int results_print_csv(const struct results *results, FILE *file);

#endif
