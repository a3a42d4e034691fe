// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "factors.h"
#include "lib_test.h"

static void factors_are_odd(void **state)
{
	__u64 factors[HASH_LANES];

	(void)state;
	for (int round = 0; round < 100; round++) {
		factors_init(factors);
		for (int i = 0; i < HASH_LANES; i++)
			assert_true(factors[i] & 1);
	}
}

static void factors_are_others_each_time(void **state)
{
	__u64 first[HASH_LANES], second[HASH_LANES];

	(void)state;
	factors_init(first);
	factors_init(second);
	for (int i = 0; i < HASH_LANES; i++)
		for (int j = 0; j < HASH_LANES; j++)
			assert_int_not_equal(first[i], second[j]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(factors_are_odd),
		cmocka_unit_test(factors_are_others_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
