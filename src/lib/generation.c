/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "generation.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int generation_init(struct generation *generation, const struct store *store)
{
	*generation = (struct generation){ .store = store };
	generation->entered = calloc(store->n_cpus, sizeof(*generation->entered));
	return generation->entered ? 0 : -ENOMEM;
}

void generation_done(struct generation *generation)
{
	free(generation->entered);
	*generation = (struct generation){ 0 };
}

void generation_flip(struct generation *generation)
{
	const struct store *store = generation->store;

	assert(generation->phase == GENERATION_SETTLED);
	generation->current = !generation->current;
	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++)
		__atomic_store_n(&store->cpus[cpu].generation,
				 generation->current, __ATOMIC_SEQ_CST);
	generation->phase = FLIPPED;
}

static void note_entered(struct generation *generation)
{
	const struct store *store = generation->store;

	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++)
		generation->entered[cpu] = __atomic_load_n(
			&store->cpus[cpu].entered, __ATOMIC_ACQUIRE);
}

static bool have_exited(const struct generation *generation)
{
	const struct store *store = generation->store;

	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++)
		if (__atomic_load_n(&store->cpus[cpu].exited, __ATOMIC_ACQUIRE) <
		    generation->entered[cpu])
			return false;
	return true;
}

bool generation_settle(struct generation *generation)
{
	switch (generation->phase) {
	case FLIPPED:
		note_entered(generation);
		generation->phase = ENTERED_NOTED;
		return false;
	case ENTERED_NOTED:
		if (have_exited(generation))
			generation->phase = ALL_EXITED;
		return false;
	default:
		generation->phase = GENERATION_SETTLED;
		return true;
	}
}
