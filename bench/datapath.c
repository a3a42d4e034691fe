/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * In each round all designs take turns, with each number of flows: a design is
 * opened, filled, measured in all its cases, and closed again, so that only
 * one large table exists at a time. With --quick each has its turn once, in
 * which it does all rounds.
 */
#include "chart.h"
#include "plan.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>

/* ---- Measuring --------------------------------------------------------------- */

static const struct slot slots[] = { { .ms = 25 }, { .ms = 10 } };

static const struct slot *find_slot(const struct plan *plan)
{
	return &slots[plan->config->quick];
}

/* Filling large tables takes most of the time. */
static uint32_t count_openings(const struct plan *plan)
{
	return plan->config->quick ? 1 : plan->config->rounds;
}

/* In milliseconds, roughly: what filling costs, and what measuring does. */
static double opening_work(const struct cell *cell)
{
	return cell->flows * (cell->design == DESIGN_NETOBS ? 4e-3 : 1e-3);
}

static double total_work(const struct plan *plan)
{
	const struct results *results = &plan->results;
	int design = -1;
	double work = 0;

	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		work += (double)find_slot(plan)->ms * results->rounds;
		if (cell->design != design)
			work += opening_work(cell) * count_openings(plan);
		design = cell->design;
	}
	return work;
}

static void show_progress(struct plan *plan, const struct cell *cell)
{
	char text[64];

	snprintf(text, sizeof(text), "%s, %u flows", designs[cell->design].name,
		 cell->flows);
	progress_show(&plan->progress, text);
}

/* Open a design and measure its cells, @n of them, @rounds times. */
static int measure_design(struct plan *plan, struct cell *cells, uint32_t n,
			  uint32_t rounds)
{
	struct subject subject;
	int err;

	show_progress(plan, cells);
	err = plan_prepare(plan, cells);
	if (!err)
		err = subject_open(&subject, &designs[cells->design],
				   &plan->runner, cells->direction);
	if (err)
		return err;
	err = subject_fill(&subject);
	progress_add(&plan->progress, opening_work(cells));
	for (uint32_t round = 0; round < rounds && !err; round++) {
		for (uint32_t i = 0; i < n && !err; i++)
			err = plan_measure(plan, &subject, &cells[i],
					   find_slot(plan));
	}
	err = err ?: subject_check(&subject);
	subject_close(&subject);
	return err;
}

/* How many cells from the first on are of the same design and flows. */
static uint32_t count_alike(const struct cell *cells, uint32_t n)
{
	uint32_t i = 1;

	while (i < n && cells[i].design == cells->design &&
	       cells[i].flows == cells->flows &&
	       cells[i].traffic == cells->traffic &&
	       cells[i].direction == cells->direction)
		i++;
	return i;
}

/* Everything, so that what the host does meanwhile spoils no case more than others. */
static int measure_plan_round(struct plan *plan)
{
	struct results *results = &plan->results;
	uint32_t rounds = results->rounds / count_openings(plan), n;
	int err = 0;

	for (uint32_t i = 0; i < results->n_cells && !err; i += n) {
		struct cell *cells = &results->cells[i];

		n = count_alike(cells, results->n_cells - i);
		err = measure_design(plan, cells, n, rounds);
		plan_report_error(plan, cells, err);
	}
	return err;
}

static int measure_situations(struct plan *plan)
{
	uint32_t times = count_openings(plan);
	int err = 0;

	for (uint32_t i = 0; i < times && !err; i++)
		err = measure_plan_round(plan);
	return err;
}

static int measure_and_write(struct plan *plan, struct report_file *csv,
			     struct report_file *plot)
{
	const bool is_json = plan->config->output == OUTPUT_JSON;
	struct report report;
	int err;

	progress_begin(&plan->progress, total_work(plan));
	err = measure_situations(plan);
	progress_clear(&plan->progress);
	if (err)
		return err;
	results_sum_up(&plan->results);
	report = results_report(&plan->results, results_fields,
				results_print_table);
	err = report_print(&report, is_json);
	err = err ?: report_file_write(csv, &report, report_write_csv);
	return err ?: report_file_write(plot, &report, chart_draw);
}

int datapath_run(const struct config *config)
{
	struct report_file csv, plot = { .fd = -1 };
	struct plan plan = { 0 };
	int err = report_file_open(&csv, config->csv_path);

	err = err ?: report_file_open(&plot, config->plot_path);
	err = err ?: plan_open(&plan, config);
	err = err ?: measure_and_write(&plan, &csv, &plot);
	plan_close(&plan);
	report_file_close(&plot);
	report_file_close(&csv);
	return err;
}
