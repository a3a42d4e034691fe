/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The interval of a ratio contains the true one as often as it says, also after stopping. */
#include "lib_test.h"

#include <math.h>

#include "bench/bench.h"
#include "bench/runner.h"

enum { TRIALS = 3000, MOST = 2000, STEP = 10, SEED = 11 };

static uint64_t seed = SEED;

/* In (0, 1). */
static double draw_uniform(void)
{
	return ((packets_random(&seed) >> 11) + 0.5) * 0x1p-53;
}

/* Box and Muller. */
static double draw_normal(void)
{
	return sqrt(-2 * log(draw_uniform())) * cos(2 * M_PI * draw_uniform());
}

static double draw_quiet(void)
{
	return 0.9 + 0.003 * draw_normal();
}

static double draw_noisy(void)
{
	return 0.9 + 0.05 * draw_normal();
}

/* Interruptions by others only lower a rate. Its median is that of exp(1), ln 2, scaled. */
static double draw_skewed(void)
{
	return 0.9 + 0.04 * (log(draw_uniform()) + log(2));
}

/* Without a mean. */
static double draw_cauchy(void)
{
	return 0.9 + 0.01 * tan(M_PI * (draw_uniform() - 0.5));
}

/* A host that has two speeds, and changes them between neighbours at times. */
static double draw_two_speeds(void)
{
	double chance = draw_uniform(), shift = chance < 0.1 ? -0.2 :
						chance > 0.9 ? 0.2 :
							       0;

	return 0.9 + shift + 0.01 * draw_normal();
}

/* All with the median 0.9. */
static double (*const draws[])(void) = { draw_quiet, draw_noisy, draw_skewed,
					 draw_cauchy, draw_two_speeds };

static double values[MOST], sorted[MOST];

static struct interval sum_up(uint32_t n)
{
	memcpy(sorted, values, n * sizeof(*values));
	return interval_of(sorted, n);
}

static struct interval measure_times(double (*draw)(void), uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		values[i] = draw();
	return sum_up(n);
}

/* As the benchmarks do it. */
static struct interval measure_until_narrow(double (*draw)(void), uint32_t *ret_n)
{
	struct interval interval;
	uint32_t n = 0;

	do {
		for (uint32_t i = 0; i < STEP; i++)
			values[n + i] = draw();
		n += STEP;
		interval = sum_up(n);
	} while (!interval_decides(n, MOST) ||
		 (n < MOST && !interval_is_narrow(&interval, INTERVAL_WIDTH)));
	*ret_n = n;
	return interval;
}

static bool is_inside(const struct interval *interval)
{
	return interval->low <= 0.9 && 0.9 <= interval->high;
}

TEST(fixed_rounds_miss_once_in_forty_at_most)
{
	static const uint32_t counts[] = { 7, 8, 20, 60, 400 };

	for (size_t i = 0; i < ARRAY_SIZE(draws) * ARRAY_SIZE(counts); i++) {
		uint32_t inside = 0;

		for (uint32_t trial = 0; trial < TRIALS; trial++) {
			struct interval found =
				measure_times(draws[i % ARRAY_SIZE(draws)],
					      counts[i / ARRAY_SIZE(draws)]);

			inside += is_inside(&found);
		}
		/* Less three standard deviations of such a count. */
		assert_true(inside > TRIALS * (0.975 - 0.009));
	}
}

TEST(stopping_when_narrow_misses_once_in_twenty_at_most)
{
	for (size_t i = 0; i < ARRAY_SIZE(draws); i++) {
		uint32_t inside = 0, n;

		for (uint32_t trial = 0; trial < TRIALS; trial++) {
			struct interval found =
				measure_until_narrow(draws[i], &n);

			assert_true(n < MOST && n >= INTERVAL_ENOUGH);
			assert_true(interval_is_narrow(&found, INTERVAL_WIDTH));
			inside += is_inside(&found);
		}
		assert_true(inside > TRIALS * (0.95 - 0.012));
	}
}

TEST(noise_takes_rounds)
{
	uint32_t quiet, noisy;

	measure_until_narrow(draw_quiet, &quiet);
	measure_until_narrow(draw_noisy, &noisy);
	assert_int_equal(quiet, INTERVAL_ENOUGH);
	assert_true(noisy > 5 * quiet);
}

static double draw_hopeless(void)
{
	return 0.9 + 2 * draw_normal();
}

TEST(rounds_have_a_bound)
{
	struct interval found;
	uint32_t n;

	found = measure_until_narrow(draw_hopeless, &n);
	assert_int_equal(n, MOST);
	assert_false(interval_is_narrow(&found, INTERVAL_WIDTH));
	assert_true(interval_is_narrow(&found, 2));
}

TEST(few_values_have_no_interval)
{
	struct interval found;

	for (uint32_t n = 1; n < INTERVAL_LEAST; n++) {
		found = measure_times(draw_quiet, n);
		assert_true(isinf(found.low) && isinf(found.high));
		assert_false(interval_is_narrow(&found, 1e300));
	}
	found = measure_times(draw_quiet, INTERVAL_LEAST);
	assert_true(found.low == sorted[0]);
	assert_true(found.high == sorted[INTERVAL_LEAST - 1]);
}

TEST(median_is_between_the_middle_two)
{
	memcpy(values, (double[]){ 4, 1, 3, 2 }, 4 * sizeof(double));
	assert_true(sum_up(3).median == 3);
	assert_true(sum_up(4).median == 2.5);
	assert_true(sum_up(1).median == 4);
}
