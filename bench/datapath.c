/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * In each case all designs are open at once, and in each round they take turns, in random
 * order: to be the program that BPF_PROG_TEST_RUN runs, or with --live the one program on a
 * wire that packets are sent over as fast as possible. What the host does meanwhile spoils
 * none more than the others, so differences of ten nanoseconds show, which separate runs
 * cannot tell apart. Where the kernel puts a program and its maps changes its time by as much,
 * so all are loaded anew every few rounds.
 */
#include "memory.h"
#include "plan.h"
#include "sequence.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A burst takes about 5 ms: how exactly a slot ends. */
static const struct slot live_slots[] = { { .ms = 50, .burst = 4096 },
					  { .ms = 20, .burst = 4096 } },
			 slots[] = { { .ms = 25 }, { .ms = 10 } };

enum { LOAD_ROUNDS = 5 };

struct alternation {
	struct plan plan;
	const struct slot *slot;

	/* Of --live. */
	struct wire wire;
	struct runner live; /* over the wire; that of the plan adapts designs */
	uint64_t sent;	    /* over the wire so far */

	/* The case: a cell and a subject for each design. */
	struct cell *cells;
	uint32_t n, opened;
	struct subject subjects[DESIGNS];
	uint32_t round;
};

/* ---- Measuring --------------------------------------------------------------- */

static int fill_store(struct alternation *alternation, uint32_t i)
{
	return subject_fill(&alternation->subjects[i]);
}

static int measure_store(struct alternation *alternation, uint32_t i)
{
	return plan_measure(&alternation->plan, &alternation->subjects[i],
			    &alternation->cells[i], alternation->round,
			    alternation->slot);
}

/* All packets that are sent meanwhile count as those of design @i. */
static int take_turn_on_wire(struct alternation *alternation, uint32_t i,
			     int (*work)(struct alternation *alternation,
					 uint32_t i))
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

/* Have packets pass the program of design @i. */
static int take_turn(struct alternation *alternation, uint32_t i,
		     int (*work)(struct alternation *alternation, uint32_t i))
{
	int err;

	if (alternation->plan.config->is_live)
		return take_turn_on_wire(alternation, i, work);
	err = spread_aim(&alternation->plan.spread,
			 alternation->subjects[i].prog_fd);
	return err ?: work(alternation, i);
}

static int open_subject(struct alternation *alternation, uint32_t i)
{
	const struct cell *cell = &alternation->cells[i];
	struct subject *subject = &alternation->subjects[i];
	int err = subject_open(subject, &designs[cell->design],
			       &alternation->plan.runner, cell->direction);

	if (alternation->plan.config->is_live) {
		subject->runner = &alternation->live;
		alternation->cells[i].sent = 0;
	}
	return plan_report_error(&alternation->plan, cell, err);
}

/* Packets that a store has not counted, or had no room for, cost something else. */
static int check_subject(struct alternation *alternation, uint32_t i)
{
	struct subject *subject = &alternation->subjects[i];
	struct cell *cell = &alternation->cells[i];

	if (!alternation->plan.config->is_live)
		return plan_report_error(&alternation->plan, cell,
					 subject_check(subject));
	if (!subject->kind->count)
		return 0;
	cell->counted = subject->kind->count(subject);
	if (cell->counted == cell->sent)
		return 0;
	fprintf(stderr,
		"netobsctl bench: %s with %u flows counted %llu of %llu packets\n",
		designs[cell->design].name, cell->flows,
		(unsigned long long)cell->counted,
		(unsigned long long)cell->sent);
	return -EIO;
}

static void close_subject(struct alternation *alternation, uint32_t i)
{
	uint64_t maps = memory_maps();

	subject_close(&alternation->subjects[i]);
	alternation->cells[i].kernel_bytes = maps - memory_maps();
}

static bool is_case_settled(void *user, uint32_t n, bool is_last)
{
	struct alternation *alternation = user;

	if (is_last)
		progress_clear(&alternation->plan.progress);
	return results_settle_case(&alternation->plan.results, alternation->cells,
				   alternation->n, n, is_last);
}

/* The programs of a direction are on the wire from the first turn on. */
static int begin_case(struct alternation *alternation)
{
	int err = 0;

	if (alternation->plan.config->is_live) {
		err = wire_attach(&alternation->wire,
				  alternation->cells->direction,
				  alternation->subjects[0].prog_fd);
		alternation->sent = wire_sent(&alternation->wire);
	}
	for (uint32_t i = 0; i < alternation->n && !err; i++)
		err = take_turn(alternation, i, fill_store);
	return err;
}

static int check_subjects(struct alternation *alternation)
{
	int err = 0;

	for (uint32_t i = 0; i < alternation->opened && !err; i++)
		err = check_subject(alternation, i);
	return err;
}

static void close_subjects(struct alternation *alternation)
{
	if (alternation->opened && alternation->plan.config->is_live)
		wire_detach(&alternation->wire);
	while (alternation->opened)
		close_subject(alternation, --alternation->opened);
}

static int load_subjects(struct alternation *alternation)
{
	int err = check_subjects(alternation);

	close_subjects(alternation);
	while (alternation->opened < alternation->n && !err) {
		err = open_subject(alternation, alternation->opened);
		alternation->opened += !err;
	}
	return err ?: begin_case(alternation);
}

static int measure_datapath_round(void *user, uint32_t round)
{
	struct alternation *alternation = user;
	uint32_t order[DESIGNS];
	int err = round % LOAD_ROUNDS ? 0 : load_subjects(alternation);

	alternation->round = round;
	sequence_permute(order, alternation->n, round + 1);
	for (uint32_t i = 0; i < alternation->n && !err; i++)
		err = take_turn(alternation, order[i], measure_store);
	return err;
}

static int measure_case(struct alternation *alternation)
{
	const struct rounds_work work = { .measure = measure_datapath_round,
					  .is_settled = is_case_settled,
					  .user = alternation };
	const struct cell *cell = alternation->cells;
	uint32_t n;
	char text[64];
	int err;

	snprintf(text, sizeof(text), "%s, %u flows",
		 traffic_names[cell->traffic], cell->flows);
	progress_show(&alternation->plan.progress, text);
	err = plan_prepare(&alternation->plan, cell);
	err = err ?: rounds_measure(&alternation->plan.results.rounds, &work, &n);
	err = err ?: check_subjects(alternation);
	close_subjects(alternation);
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
	int err = wire_open(&alternation->wire, &alternation->plan.spread);

	if (err)
		return err;
	alternation->live = alternation->plan.runner;
	alternation->live.wire = &alternation->wire;
	err = measure_alternation(alternation);
	wire_close(&alternation->wire);
	return err;
}

static int measure_and_print(struct alternation *alternation)
{
	struct plan *plan = &alternation->plan;
	const struct config *config = plan->config;
	struct report report;
	int err;

	alternation->slot =
		&(config->is_live ? live_slots : slots)[config->quick];
	progress_begin(&plan->progress, (double)plan->results.n_cells *
						INTERVAL_ENOUGH *
						alternation->slot->ms);
	err = config->is_live ? measure_on_wire(alternation) :
				measure_alternation(alternation);
	progress_clear(&plan->progress);
	if (err)
		return err;
	report = results_report(&plan->results);
	return report_print(&report, config->output == OUTPUT_JSON);
}

int datapath_run(const struct config *config)
{
	struct alternation alternation = { 0 };
	int err = plan_open(&alternation.plan, config);

	err = err ?: measure_and_print(&alternation);
	plan_close(&alternation.plan);
	return err;
}
