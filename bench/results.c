/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "results.h"

#include "base/util.h"

#include <errno.h>
#include <math.h>

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
	added->n_samples = 0;
	added->samples = calloc(results->rounds, 2 * sizeof(double));
	if (!added->samples)
		return -ENOMEM;
	added->ratios = added->samples + results->rounds;
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

/* ---- Sums ------------------------------------------------------------------ */

bool results_is_same_case(const struct cell *a, const struct cell *b)
{
	return a->traffic == b->traffic && a->direction == b->direction &&
	       a->order == b->order && a->sharing == b->sharing &&
	       a->n_cpus == b->n_cpus;
}

/* The measured cell of a design in the case and with the flows of @like, or NULL. */
static const struct cell *find_cell(const struct results *results,
				    const struct cell *like, int design)
{
	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		if (cell->design == design && cell->flows == like->flows &&
		    results_is_same_case(cell, like) && cell->n_samples)
			return cell;
	}
	return NULL;
}

const struct cell *results_find_empty(const struct results *results,
				      const struct cell *cell)
{
	return find_cell(results, cell, DESIGN_EMPTY);
}

void results_sum_up(struct results *results)
{
	for (uint32_t i = 0; i < results->n_cells; i++) {
		struct cell *cell = &results->cells[i];

		if (cell->n_samples)
			cell->ns = summarize(cell->samples, cell->n_samples);
		cell->store = designs[cell->design].name;
		cell->distribution = cell->order == ORDER_ZIPF ? "zipf" :
								 "uniform";
		cell->shared = cell->sharing == SHARING_SAME ? "same" :
							       "disjoint";
		cell->traffic_name = traffic_names[cell->traffic];
		cell->way = cell->direction == EGRESS ? "egress" : "ingress";
	}
	for (uint32_t i = 0; i < results->n_cells; i++) {
		struct cell *cell = &results->cells[i];
		const struct cell *empty = find_cell(results, cell, DESIGN_EMPTY);

		cell->over_empty = empty ? cell->ns.median - empty->ns.median :
					   NAN;
	}
}

/* ---- For programs ---------------------------------------------------------- */

const struct report_field results_fields[] = {
	RESULTS_CASE_FIELDS,
	REPORT_FIELD(cell, "ns_per_packet", REPORT_NS, ns.median),
	REPORT_FIELD(cell, "ns_over_empty", REPORT_NS, over_empty),
	REPORT_FIELD(cell, "ns_min", REPORT_NS, ns.min),
	REPORT_FIELD(cell, "ns_max", REPORT_NS, ns.max),
	{ 0 }
};

struct report results_report(const struct results *results,
			     const struct report_field *fields,
			     void (*print_table)(const struct report *report))
{
	return (struct report){
		.rounds = results->rounds,
		.fields = fields,
		.rows = results->cells,
		.row_size = sizeof(*results->cells),
		.n = results->n_cells,
		.print_table = print_table,
		.user = results,
	};
}

/* ---- For people: designs by flows, for each case --------------------------------- */

enum { NAME_WIDTH = 20, WIDTH = 9 };

static double get_over_empty(const struct results *results,
			     const struct cell *column, int design)
{
	const struct cell *cell = find_cell(results, column, design);

	return cell ? cell->over_empty : NAN;
}

static double get_value(const struct results *results,
			const struct cell *column, int design)
{
	return design == DESIGN_EMPTY ? column->ns.median :
					get_over_empty(results, column, design);
}

static double get_ratio(const struct results *results,
			const struct cell *column, int design)
{
	return get_over_empty(results, column, design) /
	       get_over_empty(results, column, DESIGN_PERCPU_HASH);
}

static void print_row(const struct results *results, const struct cell *like,
		      const char *name, int design, int decimals,
		      double (*get)(const struct results *results,
				    const struct cell *column, int design))
{
	printf("%-*s", NAME_WIDTH, name);
	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];
		double value;

		if (cell->design != DESIGN_EMPTY ||
		    !results_is_same_case(cell, like))
			continue;
		value = get(results, cell, design);
		if (isnan(value))
			printf("%*s", WIDTH, "-");
		else
			printf("%*.*f", WIDTH, decimals, value);
	}
	putchar('\n');
}

static double get_flows(const struct results *results,
			const struct cell *column, int design)
{
	(void)results;
	(void)design;
	return column->flows;
}

static void print_rows(const struct results *results, const struct cell *like)
{
	uint32_t measured = 0;

	for (uint32_t i = 0; i < results->n_cells; i++)
		if (results_is_same_case(&results->cells[i], like))
			measured |= 1U << results->cells[i].design;
	print_row(results, like, "flows", 0, 0, get_flows);
	for (int design = 0; design < DESIGNS; design++)
		if (measured & 1U << design)
			print_row(results, like,
				  design == DESIGN_EMPTY ? "empty program" :
							   designs[design].name,
				  design, 1, get_value);
	if (measured & 1U << DESIGN_NETOBS && measured & 1U << DESIGN_PERCPU_HASH)
		print_row(results, like, "netobs/percpu_hash", DESIGN_NETOBS, 2,
			  get_ratio);
}

void results_print_case(const struct cell *cell)
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
}

/* No cell before @index has its case. */
static bool is_first(const struct results *results, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++)
		if (results_is_same_case(&results->cells[i],
					 &results->cells[index]))
			return false;
	return true;
}

void results_print_table(const struct report *report)
{
	const struct results *results = report->user;

	printf("ns per packet, medians of %u rounds; beyond what the empty program takes\n",
	       results->rounds);
	report_print_machine();
	for (uint32_t i = 0; i < results->n_cells; i++)
		if (is_first(results, i)) {
			results_print_case(&results->cells[i]);
			print_rows(results, &results->cells[i]);
		}
}
