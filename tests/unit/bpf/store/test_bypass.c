// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* When packets bypass L1: random ticks against what bypass.h promises. */
#include "lib_seed.h"
#include "host.h"
#include "lib_test.h"

#include "bpf/store/bypass.h"

enum { SLOTS = 1024, TICKS = 100000, MANY = 4000 };

struct tick {
	uint32_t packets, misses; /* of those that look into L1 */
	uint32_t used;		  /* slots of the log */
};

/* @return whether its packets looked into L1 */
static bool pass(struct cpu_state *cpu, const struct tick *tick)
{
	bool looks = !cpu->l1_bypass;

	cpu->entered += tick->packets;
	if (looks)
		cpu->l1_misses += tick->misses;
	cpu->log_tail = cpu->log_head - tick->used;
	bypass_tick(cpu, SLOTS);
	return looks;
}

static struct cpu_state new_cpu(void)
{
	/* Its counters have wrapped in 32 bits, or are about to. */
	return (struct cpu_state){
		.entered = test_random() << 16,
		.log_head = test_random() >> 32 << 12 | SLOTS,
	};
}

/* The ticks until packets look again. */
static uint32_t count_bypassed(struct cpu_state *cpu, const struct tick *tick)
{
	uint32_t n = 0;

	while (!pass(cpu, tick))
		n++;
	return n;
}

TEST(misses_are_bypassed_in_fifteen_ticks_of_sixteen)
{
	const struct tick misses = { .packets = MANY, .misses = MANY };
	struct cpu_state cpu = new_cpu();

	cpu.l1_entered = (uint32_t)cpu.entered;
	for (int i = 0; i < 100; i++) {
		assert_true(pass(&cpu, &misses));
		assert_int_equal(cpu.l1_bypass, BYPASS_TICKS);
		assert_int_equal(count_bypassed(&cpu, &misses), BYPASS_TICKS);
		/* The tick that looked was counted again. */
		assert_int_equal(cpu.l1_bypass, BYPASS_TICKS);
		cpu.l1_bypass = 0;
	}
}

static struct tick random_tick(void)
{
	struct tick tick = {
		.packets = test_below(2) ? test_below(MANY) :
					   test_below(2 * BYPASS_MISSES),
		.used = test_below(4) ? test_below(SLOTS / 4 * 3) :
					test_below(SLOTS + 1),
	};

	tick.misses = test_below(tick.packets + 1);
	return tick;
}

/* Whether a bypass may begin; between the two shares it may or may not. */
static bool must_begin(const struct tick *tick)
{
	return tick->used < SLOTS / 4 * 3 && tick->misses >= BYPASS_MISSES &&
	       tick->misses * 5 > tick->packets * 2;
}

static bool may_begin(const struct tick *tick)
{
	return tick->used < SLOTS / 4 * 3 && tick->misses >= BYPASS_MISSES &&
	       tick->misses * 3 > tick->packets;
}

TEST(random_ticks_keep_the_promises)
{
	struct cpu_state cpu = new_cpu();
	uint32_t began = 0, ended = 0, in_a_row = 0;

	cpu.l1_entered = (uint32_t)cpu.entered;
	for (int i = 0; i < TICKS; i++) {
		const struct tick tick = random_tick();
		bool looked = pass(&cpu, &tick), looks = !cpu.l1_bypass;

		in_a_row = looked ? 0 : in_a_row + 1;
		assert_true(in_a_row <= BYPASS_TICKS);
		if (tick.used >= SLOTS / 4 * 3) /* the reader is late */
			assert_true(looks);
		if (looked && must_begin(&tick))
			assert_false(looks);
		if (looked && !may_begin(&tick))
			assert_true(looks);
		began += looked && !looks;
		ended += !looked && looks;
	}
	assert_in_range(began, TICKS / 1000, TICKS);
	assert_in_range(ended, TICKS / 1000, TICKS);
}

TEST(without_a_log_all_packets_look)
{
	struct cpu_state cpu = { .entered = MANY, .l1_misses = MANY };

	bypass_tick(&cpu, 0);
	assert_int_equal(cpu.l1_bypass, 0);
}
