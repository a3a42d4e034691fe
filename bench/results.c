/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "results.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

enum { MIB = 1 << 20 };

int results_add(struct results *results, const struct cell *cell)
{
	uint32_t capacity = results->capacity * 2 ?: 64;
	struct cell *cells, *added;

	if (results->n_cells == results->capacity) {
		cells = reallocarray(results->cells, capacity, sizeof(*cells));
		if (!cells)
			return -ENOMEM;
		results->cells = cells;
		results->capacity = capacity;
	}
	added = &results->cells[results->n_cells];
	*added = *cell;
	added->sent = added->counted = REPORT_UNKNOWN;
	added->samples = calloc(results->rounds.most, sizeof(double));
	if (!added->samples)
		return -ENOMEM;
	results->n_cells++;
	return 0;
}

void results_clear(struct results *results)
{
	for (uint32_t i = 0; i < results->n_cells; i++)
		free(results->cells[i].samples);
	free(results->cells);
	*results = (struct results){ 0 };
}

bool results_is_same_case(const struct cell *a, const struct cell *b)
{
	return a->traffic == b->traffic && a->direction == b->direction &&
	       a->order == b->order && a->sharing == b->sharing &&
	       a->n_cpus == b->n_cpus && a->flows == b->flows;
}

/* ---- Sums ------------------------------------------------------------------ */

static void name_cell(struct cell *cell)
{
	cell->store = designs[cell->design].name;
	cell->distribution = cell->order == ORDER_ZIPF ? "zipf" : "uniform";
	cell->shared = cell->sharing == SHARING_SAME ? "same" : "disjoint";
	cell->traffic_name = traffic_names[cell->traffic];
	cell->way = cell->direction == EGRESS ? "egress" : "ingress";
}

/* @room: for @n values. */
static void sum_up_cell(const struct cell *empty, struct cell *cell, uint32_t n,
			double *room)
{
	/* A high rate is a short time. */
	for (uint32_t i = 0; i < n; i++)
		room[i] = empty->samples[i] / cell->samples[i];
	cell->ratio = interval_of(room, n);
	memcpy(room, cell->samples, n * sizeof(*room));
	cell->ns = summarize(room, n);
	cell->over_empty = cell->ns.median - empty->ns.median;
	cell->n = n;
	name_cell(cell);
}

static void report_noise(const struct results *results, const struct cell *cell)
{
	char what[128];

	snprintf(what, sizeof(what), "%s with %u flows (%s, %s, %s, %u CPUs)",
		 cell->store, cell->flows, cell->distribution,
		 cell->traffic_name, cell->way, cell->n_cpus);
	rounds_report_noise(&results->rounds, what, &cell->ratio, cell->n);
}

bool results_settle_case(const struct results *results, struct cell *cells,
			 uint32_t n_cells, uint32_t n, bool is_last)
{
	cleanup_free double *room = calloc(n, sizeof(*room));
	bool is_settled = room;

	for (uint32_t i = 0; i < n_cells && room; i++) {
		sum_up_cell(cells, &cells[i], n, room);
		if (interval_is_narrow(&cells[i].ratio, results->rounds.width))
			continue;
		is_settled = false;
		if (is_last)
			report_noise(results, &cells[i]);
	}
	return is_settled;
}

/* ---- For programs ---------------------------------------------------------- */

static const struct report_field fields[] = {
	REPORT_FIELD(cell, "store", REPORT_TEXT, store),
	REPORT_FIELD(cell, "flows", REPORT_U32, flows),
	REPORT_FIELD(cell, "distribution", REPORT_TEXT, distribution),
	REPORT_FIELD(cell, "cpus", REPORT_U32, n_cpus),
	REPORT_FIELD(cell, "sharing", REPORT_TEXT, shared),
	REPORT_FIELD(cell, "traffic", REPORT_TEXT, traffic_name),
	REPORT_FIELD(cell, "direction", REPORT_TEXT, way),
	REPORT_FIELD(cell, "rounds", REPORT_U32, n),
	REPORT_FIELD(cell, "ratio", REPORT_RATIO, ratio.median),
	REPORT_FIELD(cell, "ratio_low", REPORT_RATIO, ratio.low),
	REPORT_FIELD(cell, "ratio_high", REPORT_RATIO, ratio.high),
	REPORT_FIELD(cell, "ns_per_packet", REPORT_NS, ns.median),
	REPORT_FIELD(cell, "ns_over_empty", REPORT_NS, over_empty),
	REPORT_FIELD(cell, "ns_min", REPORT_NS, ns.min),
	REPORT_FIELD(cell, "ns_max", REPORT_NS, ns.max),
	REPORT_FIELD(cell, "sent", REPORT_U64, sent),
	REPORT_FIELD(cell, "counted", REPORT_U64, counted),
	REPORT_FIELD(cell, "kernel_bytes", REPORT_U64, kernel_bytes),
	{ 0 }
};

/* ---- For people ------------------------------------------------------------ */

static void print_case(const struct cell *cell)
{
	if (cell->n_cpus == 1)
		printf("\nOne CPU");
	else
		printf("\n%u CPUs at once, %s", cell->n_cpus,
		       cell->sharing == SHARING_SAME ?
			       "on the same flows" :
			       "each on flows of its own");
	printf(", %s, %s, %s\n",
	       cell->order == ORDER_ZIPF ? "flows by Zipf's law" :
					   "all flows alike",
	       cell->traffic_name, cell->way);
	printf("%9s  %-14s%7s %15s %7s %8s %11s\n", "flows", "store", "ratio",
	       "interval", "ns", "ns over", "kernel MiB");
}

static void print_results(const struct report *report)
{
	const struct results *results = report->user;

	printf("Rates of packets, as ratios to that with the empty program. ");
	rounds_print(&results->rounds);
	report_print_machine();
	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		if (!i || !results_is_same_case(cell, cell - 1))
			print_case(cell);
		printf("%9u  %-14s%7.3f %7.3f - %.3f %7.0f %8.0f %11.1f\n",
		       cell->flows, cell->store, cell->ratio.median,
		       cell->ratio.low, cell->ratio.high, cell->ns.median,
		       cell->over_empty, (double)cell->kernel_bytes / MIB);
	}
}

struct report results_report(const struct results *results)
{
	return (struct report){
		.rounds = results->rounds.n,
		.turns = &results->rounds,
		.fields = fields,
		.rows = results->cells,
		.row_size = sizeof(*results->cells),
		.n = results->n_cells,
		.print_table = print_results,
		.user = results,
	};
}
