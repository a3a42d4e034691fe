/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "plan.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

enum { MEMORY_MAX = 1 << 30 };

/* A way to run packets. */
struct situation {
	enum order order;
	enum sharing sharing;
	bool all_cpus;
};

static const struct situation situations[] = {
	{ ORDER_UNIFORM, SHARING_DISJOINT, false },
	{ ORDER_ZIPF, SHARING_DISJOINT, false },
	{ ORDER_UNIFORM, SHARING_SAME, true },
	{ ORDER_ZIPF, SHARING_SAME, true },
	{ ORDER_UNIFORM, SHARING_DISJOINT, true },
	{ ORDER_ZIPF, SHARING_DISJOINT, true },
};

enum { SITUATIONS = ARRAY_SIZE(situations) };

static bool is_situation_wanted(const struct config *config,
				const struct situation *s)
{
	if (config->distribution != CHOICE_ALL &&
	    config->distribution != (s->order == ORDER_ZIPF))
		return false;
	return config->cpus == CHOICE_ALL || config->cpus == s->all_cpus;
}

/* All stores and flows on one CPU; contention; and the law of real traffic. */
static bool is_quick(const struct situation *s, int design, uint32_t flows)
{
	if (s->all_cpus)
		return flows == 1 && s->sharing == SHARING_SAME &&
		       s->order == ORDER_UNIFORM;
	return s->order == ORDER_UNIFORM || design == DESIGN_EMPTY ||
	       design == DESIGN_PERCPU_HASH || design == DESIGN_NETOBS;
}

static bool fits_memory(const struct plan *plan, int design, uint32_t flows)
{
	uint64_t bytes =
		design_memory(&designs[design], flows, plan->spread.n_cpus);

	if (bytes <= MEMORY_MAX)
		return true;
	fprintf(stderr,
		"netobsctl bench: %s is left out for %u flows: it would take %llu MiB\n",
		designs[design].name, flows, (unsigned long long)(bytes >> 20));
	return false;
}

static uint32_t find_fitting(const struct plan *plan, uint32_t flows)
{
	uint32_t mask = 0;

	for (int design = 0; design < DESIGNS; design++)
		if (plan->config->design_mask & 1U << design &&
		    fits_memory(plan, design, flows))
			mask |= 1U << design;
	return mask;
}

static int add_cell(struct plan *plan, const struct situation *s, struct cell cell)
{
	const struct config *config = plan->config;
	uint32_t n_cpus = s->all_cpus ? plan->runner.n_cpus : 1;

	if (!is_situation_wanted(config, s) || (s->all_cpus && n_cpus == 1))
		return 0;
	if (config->quick && !config->is_live &&
	    !is_quick(s, cell.design, cell.flows))
		return 0;
	cell.order = s->order;
	cell.sharing = s->sharing;
	cell.n_cpus = n_cpus;
	return results_add(&plan->results, &cell);
}

/* All situations, with all designs of @mask. */
static int add_cells(struct plan *plan, uint32_t mask, struct cell cell)
{
	int err = 0;

	for (int i = 0; i < DESIGNS * SITUATIONS && !err; i++) {
		cell.design = i % DESIGNS;
		if (mask & 1U << cell.design)
			err = add_cell(plan, &situations[i / DESIGNS], cell);
	}
	return err;
}

static int add_flows(struct plan *plan, uint32_t flows)
{
	const struct config *config = plan->config;
	uint32_t mask = find_fitting(plan, flows);
	int err = 0;

	for (int i = 0; i < 2 * TRAFFICS && !err; i++) {
		const struct cell cell = { .flows = flows,
					   .traffic = i / 2,
					   .direction = i % 2 };

		if (config->traffic_mask & 1U << cell.traffic &&
		    config->direction_mask & 1U << cell.direction)
			err = add_cells(plan, mask, cell);
	}
	return err;
}

static int add_all(struct plan *plan)
{
	const struct config *config = plan->config;
	int err = 0;

	for (uint32_t i = 0; i < config->n_flow_counts && !err; i++)
		err = add_flows(plan, config->flow_counts[i]);
	if (err)
		fprintf(stderr, "netobsctl bench: %s\n", strerror(-err));
	if (err || plan->results.n_cells)
		return err;
	fputs("netobsctl bench: of what the options ask for, nothing can be measured here\n",
	      stderr);
	return -ENOENT;
}

/* What a spread must have room for. */
static uint32_t find_largest(const struct config *config)
{
	uint32_t flows = CPU_SETSIZE; /* a flow for each CPU at least */

	for (uint32_t i = 0; i < config->n_flow_counts; i++)
		flows = max_u64(flows, config->flow_counts[i]);
	return flows;
}

int plan_open(struct plan *ret_plan, const struct config *config)
{
	struct runner *runner = &ret_plan->runner;
	int err;

	*ret_plan = (struct plan){ .config = config,
				   .results.rounds = { .width = config->width,
						       .most = config->rounds } };
	err = spread_open(&ret_plan->spread, find_largest(config));
	err = err ?: runner_init(runner, &ret_plan->spread);
	if (err)
		return err;
	runner->clock = config->timestamps == 1 ? CLOCK_PRECISE : CLOCK_COARSE;
	runner->filter = config->filter;
	return add_all(ret_plan);
}

void plan_close(struct plan *plan)
{
	spread_close(&plan->spread);
	results_clear(&plan->results);
}

int plan_prepare(struct plan *plan, const struct cell *cell)
{
	struct spread *spread = &plan->spread;

	spread->traffic = cell->traffic;
	if (spread->flows == cell->flows)
		return 0;
	return spread_prepare(spread, cell->flows, plan->runner.n_cpus,
			      plan->config->distribution != 0);
}

int plan_measure(struct plan *plan, struct subject *subject, struct cell *cell,
		 uint32_t round, const struct slot *slot)
{
	const struct load load = {
		.order = cell->order,
		.sharing = cell->sharing,
		.n_cpus = cell->n_cpus,
		.budget_ms = slot->ms,
		.burst = slot->burst,
	};
	int err = subject_measure(subject, &load, &cell->samples[round]);

	if (round < INTERVAL_ENOUGH) /* most cases end then */
		progress_add(&plan->progress, slot->ms);
	return err;
}

int plan_report_error(const struct plan *plan, const struct cell *cell, int err)
{
	if (!err || err == -EINTR)
		return err;
	progress_clear(&plan->progress);
	fprintf(stderr, "netobsctl bench: %s with %u flows: %s\n",
		designs[cell->design].name, cell->flows, strerror(-err));
	return err;
}
