// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* When a generation is at rest: not while a program that entered still runs. */
#include "base/clock.h"
#include "engine/store.h"
#include "lib_test.h"
#include "lib_witness.h"

enum { PATIENCE = 1000 }; /* waits without an end in sight */

struct fixture {
	struct log silent;
	struct store store;
	struct generation generation;
};

static void begin(struct fixture *f)
{
	static const struct netobs_opts opts = { .max_flows = 64 };
	const struct store_options options = { .opts = &opts };

	assert_int_equal(store_open(&f->store, &options, &f->silent) ||
				 generation_init(&f->generation, &f->store),
			 0);
}

static void end(struct fixture *f)
{
	generation_done(&f->generation);
	store_close(&f->store);
}

TEST_FIXTURE(struct fixture, begin, end)

/* True when it settles within a handful of waits. */
static bool settles(struct generation *generation)
{
	for (int i = 0; i < 8; i++)
		if (generation_settle(generation))
			return true;
	return false;
}

/* However often it is tried, and however long a busy machine takes for that. */
static void assert_waits(struct generation *generation)
{
	for (int i = 0; i < PATIENCE; i++) {
		assert_false(generation_settle(generation));
		generation->doubt_ns = INT64_MAX;
	}
}

static void assert_all_write_to(const struct fixture *f, uint32_t generation)
{
	for (uint32_t cpu = 0; cpu < f->store.n_cpus; cpu++)
		assert_int_equal(f->store.cpus[cpu].generation, generation);
}

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

CASE(flip_sends_every_cpu_to_the_other)
{
	assert_all_write_to(f, 0);
	for (uint32_t i = 1; i < 6; i++) {
		generation_flip(&f->generation);
		assert_all_write_to(f, i % 2);
		assert_int_equal(f->generation.current, i % 2);
		assert_int_equal(generation_old(&f->generation), !(i % 2));
		assert_true(settles(&f->generation));
	}
}

CASE(settling_takes_waits_even_when_nothing_runs)
{
	int waits = 0;

	generation_flip(&f->generation);
	while (!generation_settle(&f->generation))
		waits++;
	/* The flip has to reach the CPUs, and their stores have to come back. */
	assert_in_range(waits, 2, 4);
	assert_true(generation_settle(&f->generation)); /* and stays */
}

CASE(settling_waits_for_a_program_of_any_cpu)
{
	for (uint32_t cpu = 0; cpu < f->store.n_cpus; cpu++) {
		struct cpu_state *running = &f->store.cpus[cpu];

		running->entered++;
		generation_flip(&f->generation);
		assert_waits(&f->generation);
		running->exited++;
		assert_true(settles(&f->generation));
	}
}

CASE(settling_does_not_wait_for_those_that_enter_later)
{
	struct cpu_state *cpu = &f->store.cpus[0];

	cpu->entered = 100;
	cpu->exited = 99;
	generation_flip(&f->generation);
	assert_false(generation_settle(&f->generation));
	assert_false(generation_settle(&f->generation));
	/* The one is done, the next is at it: a busy CPU is always in between. */
	cpu->entered = 101;
	cpu->exited = 100;
	assert_true(settles(&f->generation));
}

CASE(settling_counts_those_that_enter_before_the_flip_arrives)
{
	struct cpu_state *cpu = &f->store.cpus[0];

	generation_flip(&f->generation);
	cpu->entered++; /* read the old generation: its store was not there yet */
	assert_waits(&f->generation);
	cpu->exited++;
	assert_true(settles(&f->generation));
}

CASE(settling_is_not_misled_by_another_cpus_exits)
{
	if (f->store.n_cpus < 2)
		fail_msg("needs two CPUs");
	f->store.cpus[0].entered = 10;
	f->store.cpus[0].exited = 9;
	f->store.cpus[1].entered = 10;
	f->store.cpus[1].exited = 10;
	generation_flip(&f->generation);
	assert_false(generation_settle(&f->generation));
	f->store.cpus[1].entered = 1000;
	f->store.cpus[1].exited = 1000;
	assert_waits(&f->generation);
	f->store.cpus[0].exited = 10;
	assert_true(settles(&f->generation));
}

/* Until it is at rest, as a context waits; in ms, about. */
static uint32_t settle_patiently(struct generation *generation)
{
	uint32_t waits = 0;

	while (!generation_settle(generation)) {
		assert_in_range(++waits, 1, 30000);
		usleep(1000);
	}
	return waits;
}

/* An exit that was not counted: a grace period proves it, and it is made up for. */
CASE(exits_that_were_not_counted_end_in_a_proof)
{
	static const int missed[] = { 1, 1000, -1, -1000 };
	struct witness witness = { 0 };
	struct log log = witness_log(&witness);

	f->store.log = &log;
	for (size_t i = 0; i < ARRAY_SIZE(missed); i++) {
		struct cpu_state *cpu = &f->store.cpus[i % f->store.n_cpus];

		cpu->entered += 5000;
		cpu->exited += 5000 - missed[i];
		generation_flip(&f->generation);
		settle_patiently(&f->generation);
		generation_flip(&f->generation);
		assert_true(settles(&f->generation));
	}
	/* One line for each CPU, and no more. */
	assert_int_equal(witness.warnings, f->store.n_cpus < ARRAY_SIZE(missed) ?
						   f->store.n_cpus :
						   ARRAY_SIZE(missed));
	assert_true(witness_read(&witness, "CPU 0 has miscounted"));
	witness_clear(&witness);
}

/* What makes waits long without anything wrong is not corrected. */
CASE(programs_that_end_late_are_waited_for)
{
	struct witness witness = { 0 };
	struct log log = witness_log(&witness);
	struct cpu_state *cpu = &f->store.cpus[0];
	int64_t end_ns =
		clock_boot_ns() + GENERATION_DOUBT_MS / 2 * NSEC_PER_MSEC;

	f->store.log = &log;
	cpu->entered++;
	generation_flip(&f->generation);
	while (clock_boot_ns() < end_ns) {
		assert_waits(&f->generation);
		usleep(1000);
	}
	cpu->exited++;
	assert_true(settles(&f->generation));
	assert_int_equal(witness.log_len, 0);
	witness_clear(&witness);
}

CASE(busy_cpus_are_never_taken_for_idle_ones)
{
	struct cpu_state *cpu = &f->store.cpus[0];

	cpu->exited--; /* misses one */
	generation_flip(&f->generation);
	assert_false(generation_settle(&f->generation));
	/* Another enters before the proof: how many are missed is not known. */
	cpu->entered++;
	settle_patiently(&f->generation);
	generation_flip(&f->generation);
	assert_false(generation_settle(&f->generation));
	/* Counts prove nothing here. The grace period may end at any time from now on. */
	assert_int_equal(f->generation.phase, IN_DOUBT);
	settle_patiently(&f->generation);
}
