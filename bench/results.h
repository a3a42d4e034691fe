/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The results of the datapath benchmark: a cell for each case. */
#ifndef NETOBS_BENCH_RESULTS_H
#define NETOBS_BENCH_RESULTS_H

#include "bench.h"
#include "design.h"
#include "report.h"

struct cell {
	int design;
	uint32_t flows;
	enum traffic traffic;
	enum direction direction;
	enum order order;
	enum sharing sharing;
	uint32_t n_cpus;
	uint32_t n_samples;
	double *samples; /* ns per packet, one per round */
	double *ratios;	 /* of --live, behind them */

	/* Of --live. */
	uint64_t sent; /* packets, by the interface's counters, filling included */
	uint64_t counted; /* by the store; REPORT_UNKNOWN: it counts none */
	uint64_t kernel_bytes; /* of its maps */
	struct summary ratio;  /* of rates, to that of the empty program */
	double ratio_p80;

	/* As of results_sum_up(). */
	const char *store, *distribution, *shared, *traffic_name, *way;
	struct summary ns;
	double over_empty;
};

struct results {
	uint32_t rounds;
	uint32_t n_cells;
	uint32_t capacity;
	struct cell *cells; /* by flows, then design, then case */
};

/* Add a cell without samples. Returns 0 or -ENOMEM. */
int results_add(struct results *results, const struct cell *cell);

/* "One CPU, ..." */
void results_print_case(const struct cell *cell);

/* Whether all but design and flows is alike. */
bool results_is_same_case(const struct cell *a, const struct cell *b);

/* The cell of the empty program with the flows and in the case of @cell; or NULL. */
const struct cell *results_find_empty(const struct results *results,
				      const struct cell *cell);

void results_sum_up(struct results *results);
void results_clear(struct results *results);

/* The members of a cell that all reports begin with. */
#define RESULTS_CASE_FIELDS                                                    \
	REPORT_FIELD(cell, "store", REPORT_TEXT, store),                       \
		REPORT_FIELD(cell, "flows", REPORT_U32, flows),                \
		REPORT_FIELD(cell, "distribution", REPORT_TEXT, distribution), \
		REPORT_FIELD(cell, "cpus", REPORT_U32, n_cpus),                \
		REPORT_FIELD(cell, "sharing", REPORT_TEXT, shared),            \
		REPORT_FIELD(cell, "traffic", REPORT_TEXT, traffic_name),      \
		REPORT_FIELD(cell, "direction", REPORT_TEXT, way)

struct report results_report(const struct results *results,
			     const struct report_field *fields,
			     void (*print_table)(const struct report *report));

/* A table of nanoseconds: a design per row, a number of flows per column. */
void results_print_table(const struct report *report);
extern const struct report_field results_fields[];

#endif
