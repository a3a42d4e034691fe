// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Samples of a time: their minimum, maximum and histogram. */
#include "segments.h"

TEST(the_minimum_forgets_and_the_histogram_does_not)
{
	struct conn_latency latency = { 0 };
	uint32_t tick = 77;

	latency_add(&latency, latency_of(1 * MS), tick);
	assert_ns(conn_min(&latency), 1 * MS);
	latency_add(&latency, latency_of(5 * MS), tick + CONN_MIN_WINDOW);
	assert_ns(conn_min(&latency), 1 * MS);
	latency_add(&latency, latency_of(7 * MS), tick + 2 * CONN_MIN_WINDOW);
	assert_ns(conn_min(&latency), 5 * MS);
	latency_add(&latency, latency_of(9 * MS), tick + 9 * CONN_MIN_WINDOW);
	assert_ns(conn_min(&latency), 9 * MS);
	assert_ns(latency.max, 9 * MS);
	assert_int_equal(latency.n, 4);
	for (int i = 0; i < CONN_HIST; i++) {
		uint64_t ns = 1ULL << (CONN_HIST_SHIFT + i);

		assert_int_equal(latency_bucket(latency_of(ns - 64)), i);
		assert_int_equal(latency_bucket(latency_of(ns)),
				 i < CONN_HIST - 1 ? i + 1 : i);
	}
	assert_int_equal(latency_bucket(CONN_LATENCY_MAX), CONN_HIST - 1);
	assert_int_equal(latency_of(~0ULL), CONN_LATENCY_MAX);
}
