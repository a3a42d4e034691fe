/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "plan.h"

#include "base/util.h"

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

static int plan_design(const struct config *config, const struct runner *runner,
		       int design, uint32_t flows, struct results *results)
{
	for (size_t i = 0; i < ARRAY_SIZE(situations); i++) {
		const struct situation *s = &situations[i];
		const struct cell cell = {
			.design = design,
			.flows = flows,
			.order = s->order,
			.sharing = s->sharing,
			.n_cpus = s->all_cpus ? runner->n_cpus : 1,
		};
		int err;

		if (!is_wanted(config, s) ||
		    (s->all_cpus && runner->n_cpus == 1) ||
		    (config->quick && !is_quick(s, design, flows)))
			continue;
		err = results_add(results, &cell);
		if (err)
			return err;
	}
	return 0;
}

static bool fits(const struct runner *runner, int design, uint32_t flows)
{
	uint64_t bytes = designs[design]->memory(flows, runner->spread->n_cpus);

	if (bytes <= MEMORY_MAX)
		return true;
	fprintf(stderr,
		"netobsctl bench: %s is left out for %u flows: it would take %llu MiB\n",
		designs[design]->name, flows, (unsigned long long)(bytes >> 20));
	return false;
}

int plan_make(const struct config *config, const struct runner *runner,
	      struct results *results)
{
	int err = 0;

	for (uint32_t i = 0; i < config->n_flow_counts; i++) {
		uint32_t flows = config->flow_counts[i];

		for (int design = 0; design < DESIGNS && !err; design++) {
			if (config->design_mask & 1U << design &&
			    fits(runner, design, flows))
				err = plan_design(config, runner, design, flows,
						  results);
		}
	}
	return err;
}
