// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Sixteen marks as sixteen counters of four bits. */
#include "lib_test.h"

#include "bpf/marks.h"

enum { ALL_MARKS = 0xffff, COUNTER_BITS = 4, COUNTER_MAX = 15 };

/* The counter of one mark. */
static uint64_t counter_of(uint64_t counts, int mark)
{
	return counts >> mark * COUNTER_BITS & COUNTER_MAX;
}

static void each_mark_has_its_counter(void **state)
{
	(void)state;
	for (uint32_t marks = 0; marks <= ALL_MARKS; marks++) {
		uint64_t counts = marks_spread(marks);

		for (int mark = 0; mark < FLOW_MARKS; mark++)
			assert_int_equal(counter_of(counts, mark),
					 marks >> mark & 1);
		assert_int_equal(marks_present(counts), counts);
		assert_int_equal(marks_gather(counts), marks);
	}
}

static void counter_of_any_value_is_its_mark(void **state)
{
	(void)state;
	for (uint64_t value = 1; value <= COUNTER_MAX; value++) {
		for (uint32_t marks = 0; marks <= ALL_MARKS; marks++) {
			uint64_t ones = marks_spread(marks);

			assert_int_equal(marks_present(ones * value), ones);
			assert_int_equal(marks_gather(ones * value), marks);
		}
	}
}

/* Some CPUs at once, then others one after the other. */
static void marks_that_are_there_are_not_counted_again(void **state)
{
	uint64_t counts = 0;

	(void)state;
	for (int cpu = 0; cpu < COUNTER_MAX; cpu++)
		counts += marks_spread(1 << cpu | 1 << 15);
	for (uint32_t marks = 0; marks <= ALL_MARKS; marks++)
		counts += marks_spread(marks) & ~marks_present(counts);
	assert_int_equal(counter_of(counts, 15), COUNTER_MAX);
	for (int mark = 0; mark < 15; mark++)
		assert_int_equal(counter_of(counts, mark), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_mark_has_its_counter),
		cmocka_unit_test(counter_of_any_value_is_its_mark),
		cmocka_unit_test(marks_that_are_there_are_not_counted_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
