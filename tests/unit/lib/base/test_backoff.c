// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "base/outage.h"
#include "base/clock_ms.h"
#include "lib_test.h"

TEST(delays_double_up_to_the_maximum_and_vary)
{
	const struct backoff usual = { 0 };
	const struct backoff own = { .first_ms = 100, .most_ms = 1000 };
	uint32_t least = UINT32_MAX, most = 0;

	assert_in_range(backoff_delay_ms(&usual, 0), 750, 1000);
	assert_in_range(backoff_delay_ms(&usual, 1), 1500, 2000);
	assert_in_range(backoff_delay_ms(&usual, 2), 2250, 3000);
	assert_in_range(backoff_delay_ms(&usual, UINT32_MAX), 2250, 3000);
	assert_in_range(backoff_delay_ms(&own, 3), 600, 800);
	assert_in_range(backoff_delay_ms(&own, 4), 750, 1000);
	for (int i = 0; i < 1000; i++) {
		uint32_t delay = backoff_delay_ms(&usual, 0);

		least = (uint32_t)min_u64(least, delay);
		most = (uint32_t)max_u64(most, delay);
	}
	assert_true(most - least > 150);
}

/* What an attempt took was a delay as well. */
TEST(delay_begins_with_the_attempt)
{
	struct backoff backoff = { 0 };
	int64_t now = now_ms();

	assert_true(backoff_is_due(&backoff));
	assert_int_equal(backoff_left_ms(&backoff), -1);
	backoff_wait(&backoff, now + 60000);
	assert_false(backoff_is_due(&backoff));
	assert_in_range(backoff.due_ms - now, 60750, 61000);
	assert_true(backoff_left_ms(&backoff) > 0);
	backoff_wait(&backoff, now - 60000);
	assert_true(backoff_is_due(&backoff));
	assert_int_equal(backoff_left_ms(&backoff), 0);
	assert_int_equal(backoff.failures, 2);
	backoff_reset(&backoff);
	assert_int_equal(backoff.failures, 0);
	assert_int_equal(backoff_left_ms(&backoff), -1);
}
