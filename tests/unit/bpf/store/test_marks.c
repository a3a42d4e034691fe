// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* 21 marks as 21 counters of three bits. */
#include "lib_test.h"

#include "bpf/store/marks.h"
#include "bpf/parse/l4.h"

enum {
	ALL_MARKS = (1 << FLOW_MARKS) - 1,
	COUNTER_BITS = 3,
	COUNTER_MAX = 7,
	STRIDE = 61, /* through the sets of marks; a prime */
};

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
			if (counter_of(counts, mark) != (marks >> mark & 1))
				fail_msg("mark %d of %#x", mark, marks);
		assert_true(marks_present(counts) == counts);
		assert_true(marks_gather(counts) == marks);
	}
}

static void counter_of_any_value_is_its_mark(void **state)
{
	(void)state;
	for (uint64_t value = 1; value <= COUNTER_MAX; value++) {
		for (uint32_t marks = 0; marks <= ALL_MARKS; marks += STRIDE) {
			uint64_t ones = marks_spread(marks);

			assert_int_equal(marks_present(ones * value), ones);
			assert_int_equal(marks_gather(ones * value), marks);
		}
	}
}

/* Some CPUs at once, then others one after the other. */
static void marks_that_are_there_are_not_counted_again(void **state)
{
	const int last = FLOW_MARKS - 1;
	uint64_t counts = 0;

	(void)state;
	for (int cpu = 0; cpu < COUNTER_MAX; cpu++)
		counts += marks_spread(1 << cpu | 1 << last);
	for (uint32_t marks = 0; marks <= ALL_MARKS; marks += STRIDE)
		counts += marks_spread(marks) & ~marks_present(counts);
	assert_int_equal(counter_of(counts, last), COUNTER_MAX);
	for (int mark = 0; mark < last; mark++)
		assert_int_equal(counter_of(counts, mark), 1);
}

static void flags_beside_ack_are_marked(void **state)
{
	(void)state;
	for (uint32_t flags = 0; flags <= MARK_TCP_MASK; flags++) {
		bool ack = flags & 0x10;
		uint32_t marks = flags;

		marks |= ack && flags & 0x01 ? MARK_FIN_ACK : 0;
		marks |= ack && flags & 0x02 ? MARK_SYN_ACK : 0;
		marks |= ack && flags & 0x04 ? MARK_RST_ACK : 0;
		assert_int_equal(tcp_marks(flags), marks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_mark_has_its_counter),
		cmocka_unit_test(counter_of_any_value_is_its_mark),
		cmocka_unit_test(marks_that_are_there_are_not_counted_again),
		cmocka_unit_test(flags_beside_ack_are_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
