// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "grpc/retry.h"

#include "lib_test.h"
#include "net/deadline.h"

/*
 * A collector that takes at most @most records at a time, and never the one of number
 * @bad. How many calls it takes until @n records are settled; the number of those
 * that were refused goes to @ret_refused.
 */
static unsigned int settle_all(uint32_t n, uint32_t most, uint32_t bad,
			       unsigned int *ret_refused)
{
	unsigned int calls = 0;
	struct retry retry;

	retry_reset(&retry);
	*ret_refused = 0;
	for (uint32_t from = 0; from < n; calls++) {
		uint32_t size = (uint32_t)min_u64(retry.limit, n - from);
		bool is_bad = bad >= from && bad < from + size;

		assert_true(size > 0 && calls < 10000);
		if (size <= most && !is_bad) {
			from += size;
			retry_succeeded(&retry, from);
		} else if (size > 1) {
			retry_with_less(&retry, size, from + size, size > most);
		} else {
			assert_int_equal(from, bad);
			from++;
			++*ret_refused;
			retry_refused(&retry);
		}
	}
	return calls;
}

static void all_goes_at_once_where_nothing_is_wrong(void **state)
{
	unsigned int refused;

	(void)state;
	assert_int_equal(settle_all(100000, UINT32_MAX, UINT32_MAX, &refused), 1);
	assert_int_equal(refused, 0);
}

static void one_record_is_found_and_refused(void **state)
{
	(void)state;
	for (uint32_t bad = 0; bad < 1000; bad++) {
		unsigned int refused;

		assert_true(settle_all(1000, UINT32_MAX, bad, &refused) < 40);
		assert_int_equal(refused, 1);
	}
}

/* It is not tried anew with each batch what the collector does not take. */
static void size_is_found_once(void **state)
{
	unsigned int refused;

	(void)state;
	assert_true(settle_all(100000, 1000, UINT32_MAX, &refused) <
		    100000 / 500 + 10);
	assert_int_equal(refused, 0);
}

static void size_and_record_are_found(void **state)
{
	(void)state;
	for (uint32_t bad = 0; bad < 1000; bad++) {
		unsigned int refused;

		assert_true(settle_all(1000, 100, bad, &refused) < 60);
		assert_int_equal(refused, 1);
	}
}

static void delay_grows_and_ends_with_success(void **state)
{
	struct retry retry;
	int64_t begun = now_ms();

	(void)state;
	retry_reset(&retry);
	assert_int_equal(retry_left_ms(&retry), -1);
	retry_later(&retry, begun);
	assert_in_range(retry.due_ms - begun, 750, 1000);
	assert_true(retry_is_cautious(&retry));
	retry_later(&retry, begun);
	assert_in_range(retry.due_ms - begun, 1500, 2000);
	for (int i = 0; i < 100; i++)
		retry_later(&retry, begun);
	assert_in_range(retry.due_ms - begun, 2250, 3000);
	retry_later(&retry, begun - 5000); /* which was delay enough */
	assert_int_equal(retry_left_ms(&retry), -1);
	retry_succeeded(&retry, 1);
	assert_false(retry_is_cautious(&retry));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_goes_at_once_where_nothing_is_wrong),
		cmocka_unit_test(one_record_is_found_and_refused),
		cmocka_unit_test(size_is_found_once),
		cmocka_unit_test(size_and_record_are_found),
		cmocka_unit_test(delay_grows_and_ends_with_success),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
