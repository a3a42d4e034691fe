/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * In each case all designs are open at once, and in each round they take turns, in random
 * order: to be the program that BPF_PROG_TEST_RUN runs, or with --live the one program on a
 * wire that packets are sent over as fast as possible. What the host does meanwhile spoils
 * none more than the others, so differences of ten nanoseconds show, which separate runs
 * cannot tell apart. Where the kernel puts a program and its maps changes its time by as much,
 * so all are loaded anew every few rounds.
 */
#include "bench.h"
#include "config.h"
#include "design.h"
#include "runner.h"
#include "base/util.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* Milliseconds of a turn; with --quick. */
static const uint32_t live_turn_ms[] = { 50, 20 }, turn_ms[] = { 25, 10 };

enum {
	LOAD_ROUNDS = 5,
	MEMORY_MAX = 1 << 30,
	CELLS_MAX = FLOW_COUNTS_MAX * ORDERS * DESIGNS,
};

/* Of a case and a design. */
struct cell {
	int design;
	uint32_t flows;
	enum order order;

	uint64_t sent;	/* packets, of the last programs that were loaded */
	double counted; /* of these by the store; NAN: it counts none */

	/* As of is_case_settled(). */
	uint32_t n;	       /* rounds */
	struct interval ratio; /* of rates, to that of the empty program */
	double ns, over_empty;
};

struct alternation {
	const struct config *config;
	struct rounds rounds;
	struct cell *all; /* by case, then by design: the empty program first */
	uint32_t n_all;
	struct packets packets;
	struct runner runner;
	struct wire wire; /* of --live */
	uint64_t sent;	  /* so far */
	double *samples[DESIGNS];

	/* The case: a cell and a subject for each design. */
	struct cell *cells;
	uint32_t n, opened;
	struct subject subjects[DESIGNS];
	uint32_t round;
};

/* ---- Turns ------------------------------------------------------------------- */

static uint64_t count_sent(const struct alternation *alternation)
{
	return alternation->config->is_live ? wire_sent() :
					      alternation->runner.run;
}

static int attach_subject(struct alternation *alternation, uint32_t i)
{
	return alternation->config->is_live ?
		       wire_attach(&alternation->wire,
				   alternation->subjects[i].target.prog_fd) :
		       0;
}

static int fill_store(struct alternation *alternation, uint32_t i)
{
	return subject_fill(&alternation->subjects[i], &alternation->runner);
}

static int measure_store(struct alternation *alternation, uint32_t i)
{
	const struct config *config = alternation->config;
	const uint32_t *ms = config->is_live ? live_turn_ms : turn_ms;

	return runner_measure(&alternation->runner,
			      &alternation->subjects[i].target,
			      alternation->cells[i].order, ms[config->quick],
			      &alternation->samples[i][alternation->round]);
}

/* Have packets pass the program of design @i: all that are sent meanwhile count as its own. */
static int take_turn(struct alternation *alternation, uint32_t i,
		     int (*work)(struct alternation *alternation, uint32_t i))
{
	uint64_t sent;
	int err = attach_subject(alternation, i);

	if (err)
		return err;
	err = work(alternation, i);
	sent = count_sent(alternation);
	alternation->cells[i].sent += sent - alternation->sent;
	alternation->sent = sent;
	return err;
}

/* ---- Results ----------------------------------------------------------------- */

static bool is_case_settled(void *user, uint32_t n, bool is_last)
{
	struct alternation *alternation = user;
	double *const *samples = alternation->samples;
	cleanup_free double *sorted = calloc(n, sizeof(*sorted));
	bool is_settled = sorted;

	for (uint32_t i = 0; i < alternation->n && sorted; i++) {
		struct cell *cell = &alternation->cells[i];
		char what[128];

		snprintf(what, sizeof(what), "%s with %u flows (%s)",
			 design_names[cell->design], cell->flows,
			 order_names[cell->order]);
		is_settled &= rounds_compare(&alternation->rounds, samples[0],
					     samples[i], n,
					     is_last ? what : NULL, &cell->ratio);
		memcpy(sorted, samples[i], n * sizeof(*sorted));
		cell->n = n;
		cell->ns = interval_of(sorted, n).median;
		cell->over_empty = cell->ns - alternation->cells->ns;
	}
	return is_settled;
}

static const struct report_column columns[] = {
	{ "store", COLUMN_TEXT }, { "distribution", COLUMN_TEXT },
	{ "flows", 0 },		  { "ratio", 4 },
	{ "ratio_low", 4 },	  { "ratio_high", 4 },
	{ "ns_per_packet", 2 },	  { "ns_over_empty", 2 },
	{ "rounds", 0 },	  { "sent", 0 },
	{ "counted", 0 },
};

static void print_results(const struct alternation *alternation)
{
	struct report report = { .is_json = alternation->config->output ==
					    OUTPUT_JSON,
				 .columns = columns,
				 .n_columns = ARRAY_SIZE(columns) };

	report_begin(&report,
		     "Rates of packets, as ratios to that with the empty program",
		     alternation->rounds.n, &alternation->rounds);
	for (uint32_t i = 0; i < alternation->n_all; i++) {
		const struct cell *c = &alternation->all[i];
		const char *const texts[ARRAY_SIZE(columns)] = {
			design_names[c->design], order_names[c->order]
		};
		const double numbers[ARRAY_SIZE(columns)] = {
			c->flows,      c->ratio.median, c->ratio.low,
			c->ratio.high, c->ns,		c->over_empty,
			c->n,	       c->sent,		c->counted
		};

		report_row(&report, texts, numbers);
	}
	report_end(&report);
}

/* ---- A case ------------------------------------------------------------------ */

static int report_failure(const struct cell *cell, int err)
{
	char what[64];

	snprintf(what, sizeof(what), "%s with %u flows",
		 design_names[cell->design], cell->flows);
	return failure_report(what, err);
}

/* Packets that a store has not counted cost something else. */
static int check_subjects(struct alternation *alternation)
{
	for (uint32_t i = 0; i < alternation->opened; i++) {
		struct subject *subject = &alternation->subjects[i];
		struct cell *cell = &alternation->cells[i];

		cell->counted = subject_count(subject);
		if (isnan(cell->counted) || cell->counted == cell->sent)
			continue;
		fprintf(stderr,
			"netobsctl bench: %s with %u flows counted %.0f of %llu packets\n",
			design_names[cell->design], cell->flows, cell->counted,
			(unsigned long long)cell->sent);
		return -EIO;
	}
	return 0;
}

static void close_subjects(struct alternation *alternation)
{
	if (alternation->opened && alternation->config->is_live)
		wire_detach(&alternation->wire);
	while (alternation->opened)
		subject_close(&alternation->subjects[--alternation->opened]);
}

static int open_subjects(struct alternation *alternation)
{
	while (alternation->opened < alternation->n) {
		const uint32_t i = alternation->opened;
		struct cell *cell = &alternation->cells[i];
		int err = subject_open(&alternation->subjects[i], cell->design,
				       cell->flows);

		if (err)
			return report_failure(cell, err);
		cell->sent = 0;
		alternation->opened++;
	}
	return 0;
}

static int fill_stores(struct alternation *alternation)
{
	int err = attach_subject(alternation, 0);

	alternation->sent = count_sent(alternation);
	for (uint32_t i = 0; i < alternation->n && !err; i++)
		err = report_failure(&alternation->cells[i],
				     take_turn(alternation, i, fill_store));
	return err;
}

static int load_subjects(struct alternation *alternation)
{
	int err = check_subjects(alternation);

	close_subjects(alternation);
	err = err ?: open_subjects(alternation);
	return err ?: fill_stores(alternation);
}

static int measure_datapath_round(void *user, uint32_t round)
{
	struct alternation *alternation = user;
	uint32_t order[DESIGNS];
	int err = round % LOAD_ROUNDS ? 0 : load_subjects(alternation);

	alternation->round = round;
	packets_permute(order, alternation->n, round + 1);
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
	struct packets *packets = &alternation->packets;
	uint32_t n;
	char text[64];
	int err = 0;

	snprintf(text, sizeof(text), "%u flows, %s", cell->flows,
		 order_names[cell->order]);
	progress_show(text);
	if (packets->flows != cell->flows)
		err = packets_prepare(packets, cell->flows, true);
	err = err ?: rounds_measure(&alternation->rounds, &work, &n);
	err = err ?: check_subjects(alternation);
	close_subjects(alternation);
	return err;
}

/* ---- All cases --------------------------------------------------------------- */

/* The designs of a case. Tables too large for a host that has other things to do are left out. */
static void add_case(struct alternation *alternation, struct cell cell)
{
	for (cell.design = 0; cell.design < DESIGNS; cell.design++)
		if (alternation->config->design_mask & 1U << cell.design &&
		    design_memory(cell.design, cell.flows) <= MEMORY_MAX)
			alternation->all[alternation->n_all++] = cell;
}

static void add_flows(struct alternation *alternation, uint32_t flows)
{
	const struct config *config = alternation->config;

	for (int i = 0; i < ORDERS; i++)
		if (config->distribution == CHOICE_ALL ||
		    config->distribution == i)
			add_case(alternation,
				 (struct cell){ .flows = flows, .order = i });
}

static void report_large(const struct config *config, uint32_t flows)
{
	for (int i = 0; i < DESIGNS; i++)
		if (config->design_mask & 1U << i &&
		    design_memory(i, flows) > MEMORY_MAX)
			fprintf(stderr,
				"netobsctl bench: %s is left out for %u flows: it would take %llu MiB\n",
				design_names[i], flows,
				(unsigned long long)design_memory(i, flows) >> 20);
}

static int prepare(struct alternation *alternation)
{
	const struct config *config = alternation->config;

	alternation->rounds = (struct rounds){ .width = config->width,
					       .most = config->rounds };
	alternation->all = calloc(CELLS_MAX, sizeof(*alternation->all));
	for (int i = 0; i < DESIGNS; i++) {
		alternation->samples[i] = calloc(config->rounds, sizeof(double));
		if (!alternation->all || !alternation->samples[i])
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < config->n_flow_counts; i++) {
		report_large(config, config->flow_counts[i]);
		add_flows(alternation, config->flow_counts[i]);
	}
	return runner_init(&alternation->runner, &alternation->packets,
			   config->is_live ? &alternation->wire : NULL);
}

static int measure_all(struct alternation *alternation)
{
	int err = 0;

	for (uint32_t i = 0; i < alternation->n_all && !err; i += alternation->n) {
		alternation->cells = &alternation->all[i];
		alternation->n = 1;
		while (i + alternation->n < alternation->n_all &&
		       alternation->cells[alternation->n].design != DESIGN_EMPTY)
			alternation->n++;
		err = measure_case(alternation);
	}
	progress_show(NULL);
	return err;
}

static int measure_on_wire(struct alternation *alternation)
{
	int err = wire_open(&alternation->wire);

	if (err)
		return err;
	err = measure_all(alternation);
	wire_close(&alternation->wire);
	return err;
}

int datapath_run(const struct config *config)
{
	struct alternation alternation = { .config = config };
	int err = prepare(&alternation);

	if (!err)
		err = config->is_live ? measure_on_wire(&alternation) :
					measure_all(&alternation);
	if (!err)
		print_results(&alternation);
	packets_clear(&alternation.packets);
	free(alternation.all);
	for (int i = 0; i < DESIGNS; i++)
		free(alternation.samples[i]);
	return err;
}
