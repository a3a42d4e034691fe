// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What became of records, by the names of sinks that come and go. */
#include "lib_test.h"

#include <limits.h>

#include <netobs/flow.h>

#include "service/outputs/sink_totals.h"

#define AWAY "json:unix:/nonexistent/socket"

static struct sink_totals totals;

static void keep(const struct output *output, void *user)
{
	(void)user;
	sink_totals_keep(&totals, output);
}

/* A sink that has taken @n records. */
static struct output open_with(const char *name, const char *spec, int n)
{
	const struct netobs_flow flow = {
		.sz = sizeof(flow),
		.point_size = sizeof(struct netobs_point),
		.packets = 2,
		.bytes = 100,
		.ethertype = 0x86dd,
		.proto = 17,
	};
	struct output output = output_of(spec);

	output.name = name;
	output.on_last = keep;
	assert_int_equal(sink_totals_reserve(&totals, name), 0);
	assert_int_equal(output_open(&output), 0);
	for (int i = 0; i < n; i++)
		output_record(&output, &flow.record);
	output_interval(&output);
	return output;
}

static void close_it(struct output *output)
{
	output_close(output);
	output_done(output);
}

/* The only total. */
static struct sink_total sum_of(const struct output *outputs, size_t n)
{
	struct sink_total *list, total;

	assert_int_equal(sink_totals_sum(&totals, outputs, n, &list), 1);
	total = *list;
	free(list);
	return total;
}

static int forget_totals(void **state)
{
	(void)state;
	sink_totals_done(&totals);
	return 0;
}

#define CASE(name) TEST_WITH(name, NULL, forget_totals)

CASE(counts_stay_with_the_name)
{
	struct output output = open_with("a", "null", 3);
	struct sink_total total;

	close_it(&output);
	total = sum_of(NULL, 0);
	assert_false(total.is_open);
	assert_int_equal(total.stats.taken.records, 3);
	output = open_with("a", "null?records=flow,alert", 2);
	total = sum_of(&output, 1);
	assert_string_equal(total.name, "a");
	assert_string_equal(total.target, "null");
	assert_true(total.is_open && total.is_connected);
	assert_int_equal(total.stats.taken.records, 5);
	assert_int_equal(total.stats.taken.packets, 10);
	assert_int_equal(total.stats.taken.bytes, 500);
	assert_int_equal(total.stats.delivered.records, 5);
	close_it(&output);
}

CASE(records_in_memory_are_given_up)
{
	struct output output = open_with("a", AWAY, 4);
	struct sink_total total = sum_of(&output, 1);

	assert_int_equal(total.stats.pending.records, 4);
	assert_false(total.is_connected);
	close_it(&output);
	total = sum_of(NULL, 0);
	assert_int_equal(total.stats.pending.records, 0);
	assert_int_equal(total.stats.pending_ms, 0);
	assert_int_equal(total.stats.dropped[SINK_GIVEN_UP].records, 4);
	assert_int_equal(total.kept.records, 0);
	assert_string_equal(sink_reason_name(SINK_GIVEN_UP), "given_up");
	assert_null(sink_reason_name(SINK_REASONS));
}

CASE(records_on_disk_are_kept)
{
	char dir[] = "/tmp/netobs-totals-XXXXXX", spec[PATH_MAX],
	     command[PATH_MAX];
	struct output output;
	struct sink_total total;

	assert_non_null(mkdtemp(dir));
	snprintf(spec, sizeof(spec), AWAY "?spool=disk:%s/spool", dir);
	output = open_with("a", spec, 4);
	close_it(&output);
	output = open_with("a", spec, 1);
	total = sum_of(&output, 1);
	assert_int_equal(total.stats.taken.records, 5);
	assert_int_equal(total.stats.recovered.records, 4);
	assert_int_equal(total.stats.pending.records, 5);
	assert_int_equal(total.kept.records, 4);
	assert_int_equal(total.stats.dropped[SINK_GIVEN_UP].records, 0);
	close_it(&output);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

/* Its records are pending, and its spool is nobody's any more. */
CASE(leaving_sink_counts_with_that_in_use)
{
	struct output outputs[] = {
		open_with("a", AWAY "?spool.max_bytes=2M", 4),
		open_with("a", "null?spool.max_bytes=3M", 1),
		open_with("a", "null?spool.max_bytes=4M", 1),
	};
	struct sink_total total;

	outputs[0].is_leaving = true;
	outputs[2].is_prepared = true;
	total = sum_of(outputs, 3);
	assert_int_equal(total.stats.taken.records, 5);
	assert_int_equal(total.stats.pending.records, 4);
	assert_true(total.stats.pending_ms > 0);
	assert_false(total.is_connected);
	assert_string_equal(total.target, "null");
	assert_int_equal(total.stats.spool_max_bytes, 3 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++)
		close_it(&outputs[i]);
}

CASE(further_names_are_one_total)
{
	const int names = SINK_TOTALS_MAX + 50;
	struct sink_total *list;
	uint64_t sum = 0;
	size_t n;

	for (int i = 0; i < names; i++) {
		struct output output;
		char name[16];

		snprintf(name, sizeof(name), "n%d", i);
		output = open_with(name, "null", 1);
		close_it(&output);
	}
	n = sink_totals_sum(&totals, NULL, 0, &list);
	assert_int_equal(n, SINK_TOTALS_MAX);
	for (size_t i = 0; i < n; i++)
		sum += list[i].stats.taken.records;
	assert_int_equal(sum, names);
	assert_string_equal(list[n - 1].name, "all others");
	assert_int_equal(list[n - 1].stats.taken.records, 51);
	free(list);
}
