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

enum {
	BUDGET_MS = 25,
	BUDGET_QUICK_MS = 10,
};

struct bench {
	const struct config *config;
	struct results *results;
	struct spread spread;
	struct runner runner;
	struct progress progress;
	uint32_t budget_ms;
};

/* Filling large tables takes most of the time. */
static uint32_t openings(const struct bench *bench)
{
	return bench->config->quick ? 1 : bench->config->rounds;
}

/* In milliseconds, roughly: what filling costs, and what measuring does. */
static double opening_work(const struct cell *cell)
{
	return cell->flows * (cell->design == DESIGN_NETOBS ? 4e-3 : 1e-3);
}

static double total_work(const struct bench *bench)
{
	const struct results *results = bench->results;
	int design = -1;
	double work = 0;

	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		work += (double)bench->budget_ms * results->rounds;
		if (cell->design != design)
			work += opening_work(cell) * openings(bench);
		design = cell->design;
	}
	return work;
}

static void show_progress(struct bench *bench, const struct cell *cell)
{
	char text[64];

	snprintf(text, sizeof(text), "%s, %u flows", designs[cell->design].name,
		 cell->flows);
	progress_show(&bench->progress, text);
}

static int measure_cell(struct bench *bench, struct subject *subject,
			struct cell *cell)
{
	const struct load load = {
		.order = cell->order,
		.sharing = cell->sharing,
		.n_cpus = cell->n_cpus,
		.budget_ms = bench->budget_ms,
	};
	double ns;
	int err = subject_measure(subject, &load, &ns);

	if (err)
		return err;
	cell->samples[cell->n_samples++] = ns;
	progress_add(&bench->progress, bench->budget_ms);
	return 0;
}

/* Open a design and measure its cells, @n of them, @rounds times. */
static int measure_design(struct bench *bench, struct cell *cells, uint32_t n,
			  uint32_t rounds)
{
	struct subject subject;
	int err;

	show_progress(bench, cells);
	err = subject_open(&subject, &designs[cells->design], &bench->runner,
			   cells->direction);
	if (err)
		return err;
	err = subject_fill(&subject);
	progress_add(&bench->progress, opening_work(cells));
	for (uint32_t round = 0; round < rounds && !err; round++) {
		for (uint32_t i = 0; i < n && !err; i++)
			err = measure_cell(bench, &subject, &cells[i]);
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

static int measure_designs(struct bench *bench, struct cell *cells, uint32_t n,
			   uint32_t rounds)
{
	uint32_t alike;
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i += alike) {
		alike = count_alike(&cells[i], n - i);
		err = measure_design(bench, &cells[i], alike, rounds);
		if (err && err != -EINTR) {
			progress_clear(&bench->progress);
			fprintf(stderr, "netobsctl bench: %s with %u flows: %s\n",
				designs[cells[i].design].name, cells[i].flows,
				strerror(-err));
		}
	}
	return err;
}

/* All designs with one number of flows. */
static int measure_flows(struct bench *bench, struct cell *cells, uint32_t n)
{
	uint32_t rounds = bench->results->rounds / openings(bench);
	bool with_zipf = bench->config->distribution != 0;
	int err;

	bench->spread.traffic = cells->traffic;
	err = spread_prepare(&bench->spread, cells->flows, bench->runner.n_cpus,
			     with_zipf);
	return err ?: measure_designs(bench, cells, n, rounds);
}

/* Everything, so that what the host does meanwhile spoils no case more than others. */
static int measure_round(struct bench *bench)
{
	struct results *results = bench->results;
	uint32_t n;
	int err = 0;

	for (uint32_t i = 0; i < results->n_cells && !err; i += n) {
		struct cell *cells = &results->cells[i];

		n = 1;
		while (i + n < results->n_cells &&
		       cells[n].flows == cells->flows &&
		       cells[n].traffic == cells->traffic)
			n++;
		err = measure_flows(bench, cells, n);
	}
	return err;
}

static int measure_all(struct bench *bench)
{
	uint32_t times = openings(bench);
	int err = 0;

	for (uint32_t i = 0; i < times && !err; i++)
		err = measure_round(bench);
	return err;
}

static int run(struct bench *bench)
{
	int err = runner_init(&bench->runner, &bench->spread);

	if (bench->config->timestamps == 1)
		bench->runner.clock = CLOCK_PRECISE;
	bench->runner.filter = bench->config->filter;
	err = err ?: plan_make(bench->config, &bench->runner, bench->results);
	if (err)
		return err;
	progress_begin(&bench->progress, total_work(bench));
	err = measure_all(bench);
	progress_clear(&bench->progress);
	if (stop_requested())
		fputs("netobsctl bench: interrupted\n", stderr);
	return err;
}

static int measure_results(const struct config *config, struct results *results)
{
	struct bench bench = {
		.config = config,
		.results = results,
		.budget_ms = config->quick ? BUDGET_QUICK_MS : BUDGET_MS,
	};
	int err = spread_open(&bench.spread, plan_largest(config));

	if (err)
		return err;
	err = run(&bench);
	spread_close(&bench.spread);
	if (!err)
		results_sum_up(results);
	return err;
}

static int print_results(const struct config *config,
			 const struct results *results)
{
	const struct report report = results_report(results);

	if (config->output == OUTPUT_JSON)
		return report_print_json(&report);
	results_print_table(results);
	return 0;
}

static int measure_and_write(const struct config *config,
			     struct report_file *csv, struct report_file *plot)
{
	struct results results = { .rounds = config->rounds };
	int err = measure_results(config, &results);
	struct report report = results_report(&results);

	err = err ?: print_results(config, &results);
	err = err ?: report_file_write(csv, &report, report_write_csv);
	err = err ?: report_file_write(plot, &report, chart_draw);
	results_clear(&results);
	return err;
}

int datapath_run(const struct config *config)
{
	struct report_file csv, plot;
	int err = report_file_open(&csv, config->csv_path);

	if (!err) {
		err = report_file_open(&plot, config->plot_path);
		err = err ?: measure_and_write(config, &csv, &plot);
		report_file_close(&plot);
	}
	report_file_close(&csv);
	return err;
}
