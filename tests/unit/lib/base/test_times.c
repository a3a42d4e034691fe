// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Classes of times, against their definition. NETOBS_TEST_SEED repeats a run. */
#include "lib_seed.h"
#include "lib_test.h"

#include "base/times.h"

enum { ROUNDS = 1000000 };

/* The first bound that it does not exceed, else the last class. */
static unsigned int class_of(uint64_t ns)
{
	uint64_t bound = 16000;
	unsigned int class = 0;

	for (; class < NETOBS_TIME_CLASSES - 1 && ns > bound; bound *= 2)
		class ++;
	return class;
}

TEST(bounds_belong_to_the_class_below)
{
	uint64_t bound = 16000;

	assert_int_equal(times_class(0), 0);
	assert_int_equal(times_class(1), 0);
	for (unsigned int i = 0; i < NETOBS_TIME_CLASSES - 1; i++, bound *= 2) {
		assert_int_equal(times_class(bound - 1), i);
		assert_int_equal(times_class(bound), i);
		assert_int_equal(times_class(bound + 1), i + 1);
	}
	assert_int_equal(times_class(UINT64_MAX), NETOBS_TIME_CLASSES - 1);
}

TEST(random_times_are_in_the_class_of_their_bound)
{
	struct netobs_times times = { 0 };
	uint64_t expected[NETOBS_TIME_CLASSES] = { 0 }, sum = 0;

	for (int i = 0; i < ROUNDS; i++) {
		const uint64_t ns = (test_random() << 12) >> test_below(40);

		times_add(&times, ns);
		expected[class_of(ns)]++;
		sum += ns;
	}
	assert_memory_equal(times.classes, expected, sizeof(expected));
	assert_int_equal(times.n, ROUNDS);
	assert_int_equal(times.sum_ns, sum);
}

static struct netobs_flow a_flow(uint32_t has)
{
	return (struct netobs_flow){ .has = has,
				     .rtt_samples = 1,
				     .app_responses = 1 };
}

TEST(only_new_times_of_tcp_count)
{
	struct netobs_flow flow = a_flow(NETOBS_HAS_TCP_HEALTH | NETOBS_HAS_RTT);

	assert_true(flow_has_new_rtt(&flow));
	assert_false(flow_has_new_app_latency(&flow));
	flow = a_flow(NETOBS_HAS_RTT); /* an echo */
	assert_false(flow_has_new_rtt(&flow));
	flow = a_flow(NETOBS_HAS_TCP_HEALTH | NETOBS_HAS_RTT |
		      NETOBS_HAS_APP_LATENCY);
	assert_true(flow_has_new_app_latency(&flow));
	flow.rtt_samples = flow.app_responses = 0;
	assert_false(flow_has_new_rtt(&flow));
	assert_false(flow_has_new_app_latency(&flow));
}
