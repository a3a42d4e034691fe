// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "store.h"

#include "base/clock.h"
#include "map.h"
#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct cpu_runs {
	uint64_t entered; /* noted after the flip */
	int64_t missed;	  /* exits known to be missing in the counter */
	bool is_reported;
};

static void set_generation(struct generation *generation, uint32_t current)
{
	const struct store *store = generation->store;

	generation->current = current;
	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++)
		__atomic_store_n(&store->cpus[cpu].generation, current,
				 __ATOMIC_SEQ_CST);
	generation->phase = FLIPPED;
}

/* An earlier process may have been killed after it had switched only some CPUs. */
static void adopt_generation(struct generation *generation)
{
	set_generation(generation, generation->store->cpus[0].generation &
					   (GENERATIONS - 1));
}

int generation_init(struct generation *generation, const struct store *store)
{
	*generation = (struct generation){ .store = store };
	generation->runs = calloc(store->n_cpus, sizeof(*generation->runs));
	if (!generation->runs)
		return -ENOMEM;
	if (store->is_adopted)
		adopt_generation(generation);
	return 0;
}

void generation_done(struct generation *generation)
{
	map_grace_abandon(generation->grace);
	free(generation->runs);
	*generation = (struct generation){ 0 };
}

void generation_flip(struct generation *generation)
{
	assert(generation->phase == GENERATION_SETTLED);
	set_generation(generation, !generation->current);
}

static uint64_t read_entered(const struct generation *generation, uint32_t cpu)
{
	return __atomic_load_n(&generation->store->cpus[cpu].entered,
			       __ATOMIC_ACQUIRE);
}

static uint64_t read_exited(const struct generation *generation, uint32_t cpu)
{
	return __atomic_load_n(&generation->store->cpus[cpu].exited,
			       __ATOMIC_ACQUIRE) +
	       generation->runs[cpu].missed;
}

static bool has_exited(const struct generation *generation, uint32_t cpu)
{
	return read_exited(generation, cpu) >= generation->runs[cpu].entered;
}

static bool have_exited(const struct generation *generation)
{
	for (uint32_t cpu = 0; cpu < generation->store->n_cpus; cpu++)
		if (!has_exited(generation, cpu))
			return false;
	return true;
}

/* Note the runs that entered. False: a CPU counted more exits than entries, so exits prove nothing. */
static bool note_entered(struct generation *generation)
{
	bool is_sound = true;

	for (uint32_t cpu = 0; cpu < generation->store->n_cpus; cpu++) {
		uint64_t before = read_exited(generation, cpu);

		generation->runs[cpu].entered = read_entered(generation, cpu);
		is_sound &= before <= generation->runs[cpu].entered;
	}
	return is_sound;
}

static void doubt_generation(struct generation *generation)
{
	generation->phase = IN_DOUBT;
	map_grace_begin(&generation->grace); /* a failure is found below */
}

static void report_cpu(struct generation *generation, uint32_t cpu)
{
	struct cpu_runs *runs = &generation->runs[cpu];

	if (runs->is_reported)
		return;
	runs->is_reported = true;
	log_warning(generation->store->log,
		    "CPU %u has miscounted its program runs: drains that wait for it take a second longer",
		    cpu / generation->store->lanes);
}

/*
 * After the grace period, all runs that had entered have ended. On a CPU where none has entered
 * since, the difference of the counters is the number of missed exits; elsewhere it is unknown, and
 * left for the next time.
 */
static void correct_entered(struct generation *generation)
{
	for (uint32_t cpu = 0; cpu < generation->store->n_cpus; cpu++) {
		struct cpu_runs *runs = &generation->runs[cpu];
		uint64_t out = read_exited(generation, cpu);
		bool is_quiet = read_entered(generation, cpu) == runs->entered;

		if (out == runs->entered || (!is_quiet && out > runs->entered))
			continue;
		report_cpu(generation, cpu);
		if (is_quiet)
			runs->missed += runs->entered - out;
	}
}

/* The doubt ends when the grace period ends. */
static bool is_doubt_over(struct generation *generation)
{
	int err = generation->grace ? map_grace_result(&generation->grace) :
				      -ECANCELED;

	if (err == -EAGAIN)
		return false;
	if (err) {
		doubt_generation(generation); /* without memory: try again */
		return false;
	}
	correct_entered(generation);
	return true;
}

bool generation_settle(struct generation *generation)
{
	switch (generation->phase) {
	case FLIPPED:
		generation->phase = ENTERED_NOTED;
		generation->doubt_ns =
			clock_boot_ns() + GENERATION_DOUBT_MS * NSEC_PER_MSEC;
		if (!note_entered(generation))
			doubt_generation(generation);
		return false;
	case ENTERED_NOTED:
		if (have_exited(generation))
			generation->phase = ALL_EXITED;
		else if (clock_boot_ns() >= generation->doubt_ns)
			doubt_generation(generation);
		return false;
	case IN_DOUBT:
		if (is_doubt_over(generation))
			generation->phase = ALL_EXITED;
		return false;
	default:
		generation->phase = GENERATION_SETTLED;
		return true;
	}
}
