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

static bool is_wanted(const struct config *config, const struct situation *s)
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

static bool fits(const struct runner *runner, int design, uint32_t flows)
{
	uint64_t bytes =
		design_memory(&designs[design], flows, runner->spread->n_cpus);

	if (bytes <= MEMORY_MAX)
		return true;
	fprintf(stderr,
		"netobsctl bench: %s is left out for %u flows: it would take %llu MiB\n",
		designs[design].name, flows, (unsigned long long)(bytes >> 20));
	return false;
}

static uint32_t fitting_designs(const struct config *config,
				const struct runner *runner, uint32_t flows)
{
	uint32_t mask = 0;

	for (int design = 0; design < DESIGNS; design++)
		if (config->design_mask & 1U << design &&
		    fits(runner, design, flows))
			mask |= 1U << design;
	return mask;
}

static int plan_cell(const struct config *config, const struct runner *runner,
		     const struct situation *s, struct cell cell,
		     struct results *results)
{
	if (!is_wanted(config, s) || (s->all_cpus && runner->n_cpus == 1))
		return 0;
	if (config->quick && !config->is_live &&
	    !is_quick(s, cell.design, cell.flows))
		return 0;
	cell.order = s->order;
	cell.sharing = s->sharing;
	cell.n_cpus = s->all_cpus ? runner->n_cpus : 1;
	return results_add(results, &cell);
}

/* All designs of @mask in all situations. */
static int plan_cells(const struct config *config, const struct runner *runner,
		      uint32_t mask, struct cell cell, struct results *results)
{
	int err = 0;

	for (int i = 0; i < DESIGNS * SITUATIONS && !err; i++) {
		int situation = config->is_live ? i / DESIGNS : i % SITUATIONS;

		cell.design = config->is_live ? i % DESIGNS : i / SITUATIONS;
		if (mask & 1U << cell.design)
			err = plan_cell(config, runner, &situations[situation],
					cell, results);
	}
	return err;
}

static int plan_flows(const struct config *config, const struct runner *runner,
		      uint32_t flows, struct results *results)
{
	uint32_t mask = fitting_designs(config, runner, flows);
	int err = 0;

	for (int i = 0; i < 2 * TRAFFICS && !err; i++) {
		const struct cell cell = { .flows = flows,
					   .traffic = i / 2,
					   .direction = i % 2 };

		if (config->traffic_mask & 1U << cell.traffic &&
		    config->direction_mask & 1U << cell.direction)
			err = plan_cells(config, runner, mask, cell, results);
	}
	return err;
}

int plan_make(const struct config *config, const struct runner *runner,
	      struct results *results)
{
	int err = 0;

	for (uint32_t i = 0; i < config->n_flow_counts && !err; i++)
		err = plan_flows(config, runner, config->flow_counts[i], results);
	if (err)
		fprintf(stderr, "netobsctl bench: %s\n", strerror(-err));
	if (err || results->n_cells)
		return err;
	fputs("netobsctl bench: of what the options ask for, nothing can be measured here\n",
	      stderr);
	return -ENOENT;
}

uint32_t plan_largest(const struct config *config)
{
	uint32_t flows = CPU_SETSIZE; /* a flow for each CPU at least */

	for (uint32_t i = 0; i < config->n_flow_counts; i++)
		flows = max_u64(flows, config->flow_counts[i]);
	return flows;
}
