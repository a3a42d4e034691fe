/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* For people: a matrix of designs and flows for each way to run packets. */
#include "results.h"

#include <math.h>
#include <string.h>

enum { NAME_WIDTH = 20, WIDTH = 9 };

static bool is_same_case(const struct cell *a, const struct cell *b)
{
	return a->order == b->order && a->sharing == b->sharing &&
	       a->n_cpus == b->n_cpus;
}

/* Whether a cell like this comes up for the first time, as far as @same says. */
static bool is_first(const struct results *results, uint32_t index,
		     bool (*same)(const struct cell *a, const struct cell *b))
{
	for (uint32_t i = 0; i < index; i++) {
		if (same(&results->cells[i], &results->cells[index]))
			return false;
	}
	return true;
}

static bool is_same_column(const struct cell *a, const struct cell *b)
{
	return is_same_case(a, b) && a->flows == b->flows;
}

/* Call @print for each number of flows that occurs in the case of @like. */
static void for_each_column(const struct results *results,
			    const struct cell *like, FILE *file,
			    void (*print)(const struct results *results,
					  const struct cell *like, FILE *file))
{
	for (uint32_t i = 0; i < results->n_cells; i++) {
		struct cell column = *like;

		if (!is_same_case(&results->cells[i], like) ||
		    !is_first(results, i, is_same_column))
			continue;
		column.flows = results->cells[i].flows;
		print(results, &column, file);
	}
	fputc('\n', file);
}

static void print_flows(const struct results *results, const struct cell *like,
			FILE *file)
{
	(void)results;
	fprintf(file, "%*u", WIDTH, like->flows);
}

static void print_number(FILE *file, double value, int decimals)
{
	if (isnan(value))
		fprintf(file, "%*s", WIDTH, "-");
	else
		fprintf(file, "%*.*f", WIDTH, decimals, value);
}

static void print_median(const struct results *results, const struct cell *like,
			 FILE *file)
{
	const struct cell *cell = results_find(results, like);

	print_number(file, cell ? cell->ns.median : NAN, 1);
}

static double over_empty(const struct results *results, const struct cell *like,
			 int design)
{
	struct cell wanted = *like;
	const struct cell *cell;

	wanted.design = design;
	cell = results_find(results, &wanted);
	return cell ? cell->over_empty : NAN;
}

static void print_over_empty(const struct results *results,
			     const struct cell *like, FILE *file)
{
	print_number(file, over_empty(results, like, like->design), 1);
}

static void print_ratio(const struct results *results, const struct cell *like,
			FILE *file)
{
	double ratio = over_empty(results, like, DESIGN_NETOBS) /
		       over_empty(results, like, DESIGN_PERCPU_HASH);

	print_number(file, ratio, 2);
}

/* The rows are those of the designs that occur in this case. */
static void print_rows(const struct results *results, struct cell like, FILE *file)
{
	uint32_t seen = 0;

	for (uint32_t i = 0; i < results->n_cells; i++) {
		if (is_same_case(&results->cells[i], &like))
			seen |= 1U << results->cells[i].design;
	}
	for (int design = DESIGN_EMPTY + 1; design < DESIGNS; design++) {
		if (!(seen & 1U << design))
			continue;
		like.design = design;
		fprintf(file, "%-*s", NAME_WIDTH, designs[design]->name);
		for_each_column(results, &like, file, print_over_empty);
	}
	if (seen & 1U << DESIGN_NETOBS && seen & 1U << DESIGN_PERCPU_HASH) {
		fprintf(file, "%-*s", NAME_WIDTH, "netobs/percpu_hash");
		for_each_column(results, &like, file, print_ratio);
	}
}

static void print_case(const struct results *results, const struct cell *like,
		       FILE *file)
{
	const char *order = like->order == ORDER_ZIPF ? "flows by Zipf's law" :
							"all flows alike";

	if (like->n_cpus == 1)
		fprintf(file, "\nOne CPU, %s\n", order);
	else
		fprintf(file, "\n%u CPUs at once, %s, %s\n", like->n_cpus,
			like->sharing == SHARING_SAME ?
				"on the same flows" :
				"each on flows of its own",
			order);
	fprintf(file, "%-*s", NAME_WIDTH, "flows");
	for_each_column(results, like, file, print_flows);
	fprintf(file, "%-*s", NAME_WIDTH, "empty program");
	for_each_column(results, like, file, print_median);
	print_rows(results, *like, file);
}

int results_print_table(const struct results *results, FILE *file)
{
	fprintf(file,
		"ns per packet, medians of %u rounds; beyond what the empty program takes\n"
		"Linux %s, %s\n",
		results->rounds, results->host.kernel.release, results->host.cpu);
	for (uint32_t i = 0; i < results->n_cells; i++) {
		if (results->cells[i].design == DESIGN_EMPTY &&
		    is_first(results, i, is_same_case))
			print_case(results, &results->cells[i], file);
	}
	return 0;
}
