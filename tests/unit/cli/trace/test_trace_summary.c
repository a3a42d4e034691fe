// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_test.h"

#include "lib_stdout.h"
#include "cli/trace/trace_summary.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const uint32_t ranks[] = { 0, 500, 900, 990, 1000 };

static struct netobs_journey make_journey(uint64_t tcp_ns, uint64_t reader_ns)
{
	struct netobs_journey journey = {
		.record = { .sz = sizeof(journey),
			    .has = NETOBS_JOURNEY_HAS_READ |
				   NETOBS_JOURNEY_HAS_INITIATOR,
			    .time_ns = 1700000000000000000 },
		.length = 1000,
		.n_attempts = 1,
	};

	journey.part_ns[NETOBS_JOURNEY_TCP] = tcp_ns;
	journey.part_ns[NETOBS_JOURNEY_READER] = reader_ns;
	journey.end_ns = journey.record.time_ns + (int64_t)(tcp_ns + reader_ns);
	return journey;
}

static void add(struct trace_summary *summary, uint64_t tcp_ns, uint64_t reader_ns)
{
	const struct netobs_journey journey = make_journey(tcp_ns, reader_ns);

	trace_summary_add(summary, &journey);
}

TEST(percentiles_are_exact)
{
	struct trace_summary summary = { 0 };
	uint64_t ns[5];

	for (uint64_t i = 1000; i >= 1; i--)
		add(&summary, i * 1000, 5);
	assert_int_equal(trace_summary_percentiles(&summary.directions[0],
						   NETOBS_JOURNEY_TCP, ranks, 5,
						   ns),
			 0);
	assert_int_equal(ns[0], 1000);
	assert_int_equal(ns[1], 500000);
	assert_int_equal(ns[2], 900000);
	assert_int_equal(ns[3], 990000);
	assert_int_equal(ns[4], 1000000);
	assert_int_equal(trace_summary_percentiles(&summary.directions[1],
						   NETOBS_JOURNEY_TCP, ranks, 5,
						   ns),
			 -ENODATA);
	assert_int_equal(
		trace_summary_ranked(&summary.directions[0], 990)->ns[TRACE_TOTAL],
		990005);
	trace_summary_clear(&summary);
}

TEST(parts_that_are_not_known_do_not_count)
{
	struct netobs_journey journey = make_journey(100, 0);
	struct trace_summary summary = { 0 };
	const struct trace_series *series = summary.directions[0].series;
	uint64_t ns;

	add(&summary, 200, 300);
	journey.unknown_parts = 1U << NETOBS_JOURNEY_READER;
	journey.record.has = 0;
	trace_summary_add(&summary, &journey);
	assert_int_equal(series[NETOBS_JOURNEY_TCP].n, 2);
	assert_int_equal(series[NETOBS_JOURNEY_TCP].sum_ns, 300);
	assert_int_equal(series[NETOBS_JOURNEY_READER].n, 1);
	assert_int_equal(series[TRACE_TOTAL].n, 1);
	assert_int_equal(trace_summary_percentiles(&summary.directions[0],
						   NETOBS_JOURNEY_READER,
						   &ranks[1], 1, &ns),
			 0);
	assert_int_equal(ns, 300);
	assert_int_equal(
		trace_summary_ranked(&summary.directions[0], 500)->ns[TRACE_TOTAL],
		500);
	assert_int_equal(summary.directions[0].complete, 1);
	/* One that lacks it is enough: names would be wrong. */
	assert_string_equal(trace_summary_name(&summary, 0), "direction 0");
	trace_summary_clear(&summary);
}

/* What is beyond the limit is chosen evenly: percentiles are near, the rest is exact. */
TEST(more_journeys_than_are_kept)
{
	struct trace_summary summary = { 0 };
	const uint64_t n = 3 * TRACE_SAMPLES_MAX;
	uint64_t ns[5];

	for (uint64_t i = 1; i <= n; i++)
		add(&summary, i, 0);
	assert_int_equal(summary.directions[0].n, TRACE_SAMPLES_MAX);
	assert_int_equal(summary.directions[0].journeys, n);
	assert_int_equal(summary.directions[0].series[TRACE_TOTAL].sum_ns,
			 n * (n + 1) / 2);
	assert_int_equal(summary.directions[0].series[TRACE_TOTAL].max_ns, n);
	assert_int_equal(trace_summary_percentiles(&summary.directions[0],
						   TRACE_TOTAL, ranks, 5, ns),
			 0);
	assert_in_range(ns[1], n / 100 * 48, n / 100 * 52);
	assert_in_range(ns[2], n / 100 * 88, n / 100 * 92);
	assert_int_equal(
		trace_summary_ranked(&summary.directions[0], 1000)->ns[TRACE_TOTAL],
		n);
	trace_summary_clear(&summary);
}

static const char *written(void **state)
{
	fflush(stdout);
	return stdout_written(*state);
}

#define CASE(name) TEST_WITH(name, stdout_make_pipe, stdout_restore)

CASE(a_table_has_the_parts_that_took_time)
{
	struct netobs_journey journey = make_journey(9000, 1000);
	struct trace_summary summary = { 0 };
	const char *text;

	journey.direction = 1;
	journey.n_attempts = 2;
	journey.n_drops = 3;
	trace_summary_add(&summary, &journey);
	add(&summary, 20000, 0);
	trace_summary_print(&summary, 0);
	text = written(state);
	assert_string_equal(
		text,
		"DIRECTION        PART    JOURNEYS   SHARE      P50      P90      P99      MAX\n"
		"client > server  tcp            1  100.0%  20.0 us  20.0 us  20.0 us  20.0 us\n"
		"client > server  total          1       -  20.0 us  20.0 us  20.0 us  20.0 us\n"
		"server > client  tcp            1   90.0%  9.00 us  9.00 us  9.00 us  9.00 us\n"
		"server > client  reader         1   10.0%  1.00 us  1.00 us  1.00 us  1.00 us\n"
		"server > client  total          1       -  10.0 us  10.0 us  10.0 us  10.0 us\n"
		"client > server: 1 journeys of 1.00 kB, 1 complete, 0 with retransmissions, 0 drops\n"
		"server > client: 1 journeys of 1.00 kB, 1 complete, 1 with retransmissions, 3 drops\n");
	trace_summary_clear(&summary);
}

CASE(time_in_no_part_has_a_row)
{
	struct netobs_journey journey = make_journey(6000, 0);
	struct trace_summary summary = { 0 };

	journey.unknown_ns = 4000;
	journey.end_ns += 4000;
	journey.unknown_parts = 1U << NETOBS_JOURNEY_READER;
	trace_summary_add(&summary, &journey);
	trace_summary_print(&summary, 0);
	assert_string_equal(
		written(state),
		"DIRECTION        PART     JOURNEYS  SHARE      P50      P90      P99      MAX\n"
		"client > server  tcp             1  60.0%  6.00 us  6.00 us  6.00 us  6.00 us\n"
		"client > server  unknown         1  40.0%  4.00 us  4.00 us  4.00 us  4.00 us\n"
		"client > server  total           1      -  10.0 us  10.0 us  10.0 us  10.0 us\n"
		"client > server: 1 journeys of 1.00 kB, 0 complete, 0 with retransmissions, 0 drops\n");
	trace_summary_clear(&summary);
}

CASE(json_has_all_series)
{
	struct trace_summary summary = { 0 };
	const char *text;

	add(&summary, 9000, 1000);
	trace_summary_print_json(&summary);
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
	trace_summary_clear(&summary);
}

CASE(nothing_is_a_table_without_rows)
{
	struct trace_summary summary = { 0 };

	trace_summary_print(&summary, 0);
	assert_string_equal(
		written(state),
		"DIRECTION  PART  JOURNEYS  SHARE  P50  P90  P99  MAX\n");
	assert_null(trace_summary_ranked(&summary.directions[0], 500));
	trace_summary_clear(&summary);
}
