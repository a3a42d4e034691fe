/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The flows that the benchmarks make up are distributed as they say. */
#include "lib_test.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/util.h"
#include "bench/sequence.h"

enum { NUMBERS = 1 << 20, MOST_FLOWS = 16384, SEED = 7 };

static uint32_t numbers[NUMBERS], ranking[MOST_FLOWS], counts[MOST_FLOWS];

static void count_numbers(uint32_t flows)
{
	memset(counts, 0, sizeof(counts));
	for (size_t i = 0; i < NUMBERS; i++) {
		assert_in_range(numbers[i], 0, flows - 1);
		counts[numbers[i]]++;
	}
}

/* Five standard deviations, and what few samples round. */
static bool is_near(uint32_t count, double expected)
{
	return fabs(count - expected) < 5 * sqrt(expected) + 1;
}

static void permutation_has_every_flow_once(void **state)
{
	(void)state;
	sequence_permute(ranking, MOST_FLOWS, SEED);
	memset(counts, 0, sizeof(counts));
	for (uint32_t i = 0; i < MOST_FLOWS; i++)
		counts[ranking[i]]++;
	for (uint32_t i = 0; i < MOST_FLOWS; i++)
		assert_int_equal(counts[i], 1);
	assert_int_not_equal(ranking[0] + 1, ranking[1]);
}

static void uniform_flows_are_equally_frequent(void **state)
{
	static const uint32_t flows[] = { 1, 3, 64, 1000, 1024 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flows); i++) {
		sequence_uniform(numbers, NUMBERS, flows[i], SEED);
		count_numbers(flows[i]);
		for (uint32_t flow = 0; flow < flows[i]; flow++)
			assert_true(is_near(counts[flow],
					    (double)NUMBERS / flows[i]));
	}
}

static double zipf_sum(uint32_t flows, double exponent)
{
	double sum = 0;

	for (uint32_t rank = 1; rank <= flows; rank++)
		sum += pow(rank, -exponent);
	return sum;
}

static void zipf_flows_follow_the_law(void **state)
{
	static const uint32_t flows[] = { 1, 2, 3, 64, 1000, MOST_FLOWS };
	static const double exponents[] = { 0.0, 0.5, 1.1, 2.0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flows); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(exponents); j++) {
			double sum = zipf_sum(flows[i], exponents[j]);

			sequence_permute(ranking, flows[i], SEED);
			assert_int_equal(sequence_zipf(numbers, NUMBERS,
						       ranking, flows[i],
						       exponents[j], SEED),
					 0);
			count_numbers(flows[i]);
			for (uint32_t k = 1; k <= flows[i]; k++)
				assert_true(is_near(
					counts[ranking[k - 1]],
					NUMBERS * pow(k, -exponents[j]) / sum));
		}
	}
}

static void same_seed_gives_the_same_numbers(void **state)
{
	static uint32_t again[1000];

	(void)state;
	sequence_uniform(numbers, ARRAY_SIZE(again), 1 << 20, SEED);
	sequence_uniform(again, ARRAY_SIZE(again), 1 << 20, SEED);
	assert_memory_equal(numbers, again, sizeof(again));
	sequence_uniform(again, ARRAY_SIZE(again), 1 << 20, SEED + 1);
	assert_memory_not_equal(numbers, again, sizeof(again));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(permutation_has_every_flow_once),
		cmocka_unit_test(uniform_flows_are_equally_frequent),
		cmocka_unit_test(zipf_flows_follow_the_law),
		cmocka_unit_test(same_seed_gives_the_same_numbers),
	};

	return cmocka_run_group_tests_name("bench_sequence", tests, NULL, NULL);
}
