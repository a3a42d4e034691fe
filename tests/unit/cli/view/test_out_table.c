/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A table as lines: their order, their width, and the end of a file's. */
#include "lib_stdout.h"
#include "lib_test.h"

#include <fcntl.h>

#include <netobs/flow.h>

#include "cli/view/row.h"
#include "cli/view/view.h"
#include "cli/view/view_output.h"

#define SECOND INT64_C(1000000000)

/* Of 2020. */
enum { START_S = 1583100000 };

static struct netobs_flow flow_at(int seconds)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.has = NETOBS_HAS_PORTS,
		.start_ns = (START_S + seconds) * SECOND,
		.end_ns = (START_S + seconds) * SECOND + SECOND / 2,
		.packets = 10,
		.bytes = 1000,
		.src = { 0x20, 1, 0xd, 0xb8, [8] = 1, 2, 3, 4, 5, 6, 7, 8 },
		.dst = { 0x20, 1, 0xd, 0xb8, [8] = 8, 7, 6, 5, 4, 3, 2, 1 },
		.src_port = 40000,
		.dst_port = (uint16_t)(1000 + seconds),
		.proto = 17,
	};
}

/* The text of two intervals behind an idle one, in @width columns, if that is not NULL. */
static char *table_of(bool is_file, const char *width)
{
	static const int starts[2][3] = { { 2, 0, 1 }, { 5, 4, 3 } };
	const struct view_options by_time = { .order.sort = NETOBS_GROUP_BY_TIME,
					      .is_file = is_file };
	struct output output = { .kind = &output_table, .view = &by_time };
	void *out;
	char *text;

	fflush(stdout);
	stdout_make_pipe(&out);
	setenv("TZ", "UTC", 1);
	if (width)
		setenv("COLUMNS", width, 1);
	else
		unsetenv("COLUMNS");
	assert_int_equal(stream_open_stdout(&output.stream), 0);
	assert_int_equal(output_table.open(&output), 0);
	output_table.interval(&output);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 3; k++) {
			const struct netobs_flow flow = flow_at(starts[i][k]);

			output_table.record(&output, &flow.record);
		}
		output_table.interval(&output);
	}
	output_table.close(&output);
	stream_close(&output.stream);
	text = stdout_written(out);
	assert_true(*text);
	stdout_restore(&out);
	return text;
}

TEST(lines_are_in_the_order_of_time_with_the_date)
{
	const char *text = table_of(false, NULL), *line = text;

	for (int i = 0; i < 6; i++) {
		char expected[32];

		line = strchr(line, '\n') + 1;
		snprintf(expected, sizeof(expected), "2020-03-01 22:00:0%d", i);
		assert_memory_equal(line, expected, strlen(expected));
	}
	assert_string_equal(strchr(line, '\n'), "\n");
	assert_non_null(strstr(text, "16.0 kb/s"));
}

TEST(lines_fit_the_width)
{
	static const char *const widths[] = { "40", "80", "100", "132" };

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		char *text = table_of(false, widths[i]), *rest = NULL;

		for (char *line = strtok_r(text, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest))
			assert_true(row_text_width(line) <= atoi(widths[i]));
	}
	assert_non_null(strstr(table_of(false, "110"), "2020-03-01 22:00:05"));
	assert_non_null(strstr(table_of(false, "40"), "\u2026"));
	assert_null(strstr(table_of(false, "nonsense"), "\u2026"));
}

TEST(files_end_with_a_sum)
{
	assert_non_null(strstr(table_of(true, NULL),
			       "\n6 flows, 60 packets, 6.00 kB, in 5.5 s\n"));
	assert_null(strstr(table_of(false, NULL), "6 flows"));
}
