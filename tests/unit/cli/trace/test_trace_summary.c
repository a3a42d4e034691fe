// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_journeys.h"
#include "lib_stdout.h"
#include "lib_test.h"
#include "cli/trace/trace_summary.h"

static const char *written(void **state)
{
	fflush(stdout);
	return stdout_written(*state);
}

#define CASE(name) TEST_WITH(name, stdout_make_pipe, stdout_restore)

CASE(a_table_has_the_parts_that_took_time)
{
	struct netobs_journey journey = make_journey(9000, 1000);
	struct netobs_journeys *all = make_sums();
	const char *text;

	journey.direction = 1;
	journey.n_attempts = 2;
	journey.n_drops = 3;
	netobs_journeys_add(all, &journey);
	add_journey(all, 20000, 0);
	trace_summary_print(all, 0);
	text = written(state);
	assert_string_equal(
		text,
		"DIRECTION        PART    JOURNEYS   SHARE      P50      P90      P99      MAX\n"
		"client > server  tcp            1  100.0%  20.0 us  20.0 us  20.0 us  20.0 us\n"
		"client > server  total          1       -  20.0 us  20.0 us  20.0 us  20.0 us\n"
		"server > client  tcp            1   90.0%  9.00 us  9.00 us  9.00 us  9.00 us\n"
		"server > client  reader         1   10.0%  1.00 us  1.00 us  1.00 us  1.00 us\n"
		"server > client  total          1       -  10.0 us  10.0 us  10.0 us  10.0 us\n"
		"client > server: 1 journeys of 1.00 kB, 1 complete\n"
		"    0 with retransmissions, 0 drops\n"
		"server > client: 1 journeys of 1.00 kB, 1 complete\n"
		"    1 with retransmissions, 3 drops\n");
	netobs_journeys_free(all);
}

CASE(time_in_no_part_has_a_row)
{
	struct netobs_journey journey = make_journey(6000, 0);
	struct netobs_journeys *all = make_sums();

	journey.unknown_ns = 4000;
	journey.end_ns += 4000;
	journey.unknown_parts = 1U << NETOBS_JOURNEY_READER;
	netobs_journeys_add(all, &journey);
	trace_summary_print(all, 0);
	assert_string_equal(
		written(state),
		"DIRECTION        PART     JOURNEYS  SHARE      P50      P90      P99      MAX\n"
		"client > server  tcp             1  60.0%  6.00 us  6.00 us  6.00 us  6.00 us\n"
		"client > server  unknown         1  40.0%  4.00 us  4.00 us  4.00 us  4.00 us\n"
		"client > server  total           1      -  10.0 us  10.0 us  10.0 us  10.0 us\n"
		"client > server: 1 journeys of 1.00 kB, 0 complete\n"
		"    0 with retransmissions, 0 drops\n");
	netobs_journeys_free(all);
}

CASE(json_has_all_series)
{
	struct netobs_journeys *all = make_sums();
	const char *text;

	add_journey(all, 9000, 1000);
	trace_summary_print_json(all);
	text = written(state);
	assert_non_null(strstr(
		text,
		"{\"type\":\"trace_summary\",\"Directions\":["
		"{\"Direction\":0,\"Name\":\"client > server\",\"Journeys\":1,"
		"\"Complete\":1,\"Bytes\":1000,\"Retransmitted\":0,\"Drops\":0,"
		"\"Sampled\":false,\"Parts\":{\"write\":{\"Journeys\":1,"
		"\"SumNs\":0,\"P50Ns\":0,\"P90Ns\":0,\"P99Ns\":0,\"MaxNs\":0},"));
	assert_non_null(strstr(text, "\"total\":{\"Journeys\":1,\"SumNs\":10000,"
				     "\"P50Ns\":10000,\"P90Ns\":10000,"
				     "\"P99Ns\":10000,\"MaxNs\":10000}}},"
				     "{\"Direction\":1,"));
	assert_int_equal(text[strlen(text) - 1], '\n');
	netobs_journeys_free(all);
}

CASE(nothing_is_a_table_without_rows)
{
	struct netobs_journeys *all = make_sums();

	trace_summary_print(all, 0);
	assert_string_equal(
		written(state),
		"DIRECTION  PART  JOURNEYS  SHARE  P50  P90  P99  MAX\n");
	netobs_journeys_free(all);
}
