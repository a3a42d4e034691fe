/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * netobsctl bench datapath --live: in each case all designs are open at once, and in each
 * round they take turns, in random order, to be the one program on a wire that packets are
 * sent over as fast as possible. What the host does meanwhile spoils none more than the
 * others, so differences of ten nanoseconds show, which separate runs cannot tell apart.
 */
#include "memory.h"
#include "plan.h"
#include "sequence.h"
#include "base/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { MIB = 1 << 20 };

/* A burst takes about 5 ms: how exactly a slot ends. */
static const struct slot slot = { .ms = 50, .burst = 4096 };

struct alternation {
	struct plan plan;
	struct wire wire;
	struct runner live; /* over the wire; that of the plan adapts designs */
	uint64_t sent;	    /* over the wire so far */

	/* The case: a cell and a subject for each design. */
	struct cell *cells;
	uint32_t n;
	struct subject subjects[DESIGNS];
};

/* ---- Measuring --------------------------------------------------------------- */

static int fill_store(struct alternation *alternation, uint32_t i)
{
	return subject_fill(&alternation->subjects[i]);
}

static int measure_store(struct alternation *alternation, uint32_t i)
{
	return plan_measure(&alternation->plan, &alternation->subjects[i],
			    &alternation->cells[i], &slot);
}

/* Have packets pass the program of design @i; all that are sent count as its. */
static int take_turn(struct alternation *alternation, uint32_t i,
		     int (*work)(struct alternation *alternation, uint32_t i))
{
	struct cell *cell = &alternation->cells[i];
	struct wire *wire = &alternation->wire;
	uint64_t sent;
	int err = wire_attach(wire, cell->direction,
			      alternation->subjects[i].prog_fd);

	if (err)
		return err;
	err = work(alternation, i);
	sent = wire_sent(wire);
	cell->sent += sent - alternation->sent;
	alternation->sent = sent;
	return err;
}

static int measure_alternate_round(struct alternation *alternation, uint32_t round)
{
	uint32_t order[DESIGNS];
	int err = 0;

	sequence_permute(order, alternation->n, round + 1);
	for (uint32_t i = 0; i < alternation->n && !err; i++)
		err = take_turn(alternation, order[i], measure_store);
	return err;
}

static int open_subject(struct alternation *alternation, uint32_t i)
{
	const struct cell *cell = &alternation->cells[i];
	struct subject *subject = &alternation->subjects[i];
	int err = subject_open(subject, &designs[cell->design],
			       &alternation->plan.runner, cell->direction);

	subject->runner = &alternation->live;
	return plan_report_error(&alternation->plan, cell, err);
}

static void close_subject(struct alternation *alternation, uint32_t i)
{
	struct subject *subject = &alternation->subjects[i];
	struct cell *cell = &alternation->cells[i];
	uint64_t maps = memory_maps();

	cell->counted = subject->kind->count && !stop_requested() ?
				subject->kind->count(subject) :
				REPORT_UNKNOWN;
	maps = max_u64(maps, memory_maps());
	subject_close(subject);
	cell->kernel_bytes = maps - memory_maps();
}

/* The programs of a direction are on the wire from the first turn on. */
static int measure_alternate_rounds(struct alternation *alternation)
{
	int err = wire_attach(&alternation->wire, alternation->cells->direction,
			      alternation->subjects[0].prog_fd);

	if (err)
		return err;
	alternation->sent = wire_sent(&alternation->wire);
	for (uint32_t i = 0; i < alternation->n && !err; i++)
		err = take_turn(alternation, i, fill_store);
	for (uint32_t i = 0; i < alternation->plan.results.rounds && !err; i++)
		err = measure_alternate_round(alternation, i);
	wire_detach(&alternation->wire);
	return err;
}

static int measure_case(struct alternation *alternation)
{
	const struct cell *cell = alternation->cells;
	uint32_t opened = 0;
	char text[64];
	int err;

	snprintf(text, sizeof(text), "%s, %u flows",
		 traffic_names[cell->traffic], cell->flows);
	progress_show(&alternation->plan.progress, text);
	err = plan_prepare(&alternation->plan, cell);
	while (opened < alternation->n && !err) {
		err = open_subject(alternation, opened);
		opened += !err;
	}
	err = err ?: measure_alternate_rounds(alternation);
	while (opened)
		close_subject(alternation, --opened);
	return err;
}

static int measure_alternation(struct alternation *alternation)
{
	struct results *results = &alternation->plan.results;
	int err = 0;

	for (uint32_t i = 0; i < results->n_cells && !err; i += alternation->n) {
		struct cell *cells = &results->cells[i];
		uint32_t n = 1;

		while (i + n < results->n_cells &&
		       cells[n].flows == cells->flows &&
		       results_is_same_case(&cells[n], cells))
			n++;
		alternation->cells = cells;
		alternation->n = n;
		err = measure_case(alternation);
	}
	return err;
}

static int measure_on_wire(struct alternation *alternation)
{
	struct plan *plan = &alternation->plan;
	int err = wire_open(&alternation->wire, &plan->spread);

	if (err)
		return err;
	alternation->live = plan->runner;
	alternation->live.wire = &alternation->wire;
	progress_begin(&plan->progress, (double)plan->results.n_cells *
						plan->results.rounds * slot.ms);
	err = measure_alternation(alternation);
	progress_clear(&plan->progress);
	wire_close(&alternation->wire);
	return err;
}

/* ---- Results ----------------------------------------------------------------- */

/* Rates as ratios to that of the empty program in the same round. */
static void sum_up_ratios(const struct results *results, struct cell *cell)
{
	const struct cell *empty = results_find_empty(results, cell);

	for (uint32_t i = 0; i < results->rounds; i++)
		cell->ratios[i] = empty->samples[i] / cell->samples[i];
	cell->ratio = summarize(cell->ratios, results->rounds);
}

static void sum_up_results(struct results *results)
{
	/* results_sum_up() sorts the samples. */
	for (uint32_t i = 0; i < results->n_cells; i++)
		sum_up_ratios(results, &results->cells[i]);
	results_sum_up(results);
	for (uint32_t i = 0; i < results->n_cells; i++) {
		struct cell *cell = &results->cells[i];
		const struct cell *empty = results_find_empty(results, cell);

		/* A high rate is a short time. */
		cell->ratio_p80 =
			percentile(empty->samples, results->rounds, 0.2) /
			percentile(cell->samples, results->rounds, 0.2);
	}
}

static const struct report_field fields[] = {
	RESULTS_CASE_FIELDS,
	REPORT_FIELD(cell, "ratio", REPORT_RATIO, ratio.median),
	REPORT_FIELD(cell, "ratio_q1", REPORT_RATIO, ratio.quartiles[0]),
	REPORT_FIELD(cell, "ratio_q3", REPORT_RATIO, ratio.quartiles[1]),
	REPORT_FIELD(cell, "ratio_p80", REPORT_RATIO, ratio_p80),
	REPORT_FIELD(cell, "ns_per_packet", REPORT_NS, ns.median),
	REPORT_FIELD(cell, "ns_over_empty", REPORT_NS, over_empty),
	REPORT_FIELD(cell, "sent", REPORT_U64, sent),
	REPORT_FIELD(cell, "counted", REPORT_U64, counted),
	REPORT_FIELD(cell, "kernel_bytes", REPORT_U64, kernel_bytes),
	{ 0 }
};

static bool is_exact(const struct cell *cell)
{
	return cell->counted == REPORT_UNKNOWN || cell->counted == cell->sent;
}

static void print_cell(const struct cell *cell)
{
	printf("%9u  %-14s%9.3f %7.3f - %.3f %7.3f %8.0f %9s %11.1f\n",
	       cell->flows, cell->store, cell->ratio.median,
	       cell->ratio.quartiles[0], cell->ratio.quartiles[1],
	       cell->ratio_p80, cell->over_empty,
	       cell->counted == REPORT_UNKNOWN ? "-" :
	       is_exact(cell)		       ? "all" :
						 "not all",
	       (double)cell->kernel_bytes / MIB);
}

static void print_alternate_table(const struct report *report)
{
	const struct results *results = report->user;

	printf("rate of a flood over a veth pair as a ratio to that with the empty program:\n"
	       "median and quartiles of %u rounds, ratio of the 80th percentiles\n",
	       results->rounds);
	report_print_machine();
	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		if (!i || !results_is_same_case(cell, cell - 1)) {
			results_print_case(cell);
			printf("%9s  %-14s%9s %15s %7s %8s %9s %11s\n", "flows",
			       "store", "median", "quartiles", "p80", "ns over",
			       "counted", "kernel MiB");
		}
		print_cell(cell);
	}
}

/* A store that has not counted all packets had less to do. */
static int check_counts(const struct results *results)
{
	int err = 0;

	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		if (is_exact(cell))
			continue;
		fprintf(stderr,
			"netobsctl bench: %s with %u flows counted %llu of %llu packets\n",
			cell->store, cell->flows,
			(unsigned long long)cell->counted,
			(unsigned long long)cell->sent);
		err = -EIO;
	}
	return err;
}

static int report_results(struct plan *plan)
{
	struct report report;
	int err;

	sum_up_results(&plan->results);
	report = results_report(&plan->results, fields, print_alternate_table);
	err = report_print(&report, plan->config->output == OUTPUT_JSON);
	return err ?: check_counts(&plan->results);
}

int alternate_run(const struct config *config)
{
	struct alternation alternation = { 0 };
	int err = plan_open(&alternation.plan, config);

	err = err ?: measure_on_wire(&alternation);
	err = err ?: report_results(&alternation.plan);
	plan_close(&alternation.plan);
	return err;
}
