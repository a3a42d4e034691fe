/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_flow.h"
#include "lib_stdout.h"
#include "lib_test.h"

#include <fcntl.h>

#include "service/outputs/output.h"

#define CASE(name)                                                      \
	TEST_OF(name, struct stdout_fixture *fixture, stdout_make_pipe, \
		stdout_restore)

CASE(json_reaches_the_reader_in_whole_lines)
{
	const struct netobs_flow flow = make_datagram();
	struct output output = { .spec = "json" };
	size_t lines = 0;

	assert_int_equal(output_open(&output), 0);
	for (int i = 0; i < 1000; i++) {
		const char *text;

		output_record(&output, &flow.record);
		text = stdout_written(fixture);
		if (*text)
			assert_int_equal(text[strlen(text) - 1], '\n');
		lines += count_parts(text, "\n");
	}
	assert_true(lines < 1000);
	/* A call takes a few milliseconds at most, which may be one record's. */
	for (int i = 0; i < 1000 && lines < 1000; i++) {
		output_interval(&output);
		lines += count_parts(stdout_written(fixture), "\n");
	}
	assert_int_equal(lines, 1000);
	output_close(&output);
	output_done(&output);
	assert_int_equal(output.error, 0);
}

CASE(a_record_of_very_many_points_is_written_whole)
{
	enum { POINTS = 256 }; /* as many as a sink keeps */
	static struct netobs_point points[POINTS];
	struct netobs_flow flow = make_datagram();
	struct output output = { .spec = "json" };
	const char *text;

	for (int i = 0; i < POINTS; i++)
		points[i].name = "interface-name1";
	flow.points = points;
	flow.n_points = POINTS;
	assert_int_equal(output_open(&output), 0);
	output_record(&output, &flow.record);
	output_close(&output);
	output_done(&output);
	text = stdout_written(fixture);
	assert_int_equal(count_parts(text, "interface-name1"), POINTS);
	assert_int_equal(text[strlen(text) - 2], '}');
}

CASE(standard_output_that_is_read_only_or_closed_is_refused)
{
	struct stream stream;
	int null = open("/dev/null", O_RDONLY);

	assert_int_equal(dup2(null, STDOUT_FILENO), STDOUT_FILENO);
	close(null);
	assert_int_equal(stream_open_stdout(&stream), -EBADF);
	close(STDOUT_FILENO);
	assert_int_equal(stream_open_stdout(&stream), -EBADF);
}

TEST(records_are_those_of_the_spec_or_else_those_that_are_shown)
{
	static const struct {
		const char *spec, *taken;
	} cases[] = {
		{ "json:a", "json:a?records=journey" },
		{ "json:a?host=no", "json:a?host=no&records=journey" },
		{ "json:a?records=alert", "json:a?records=alert" },
		{ "json:a?host=no&records=alert", "json:a?host=no&records=alert" },
		{ "json:a?my_records=alert",
		  "json:a?my_records=alert&records=journey" },
		{ "json:a?host=records=b",
		  "json:a?host=records=b&records=journey" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct output output = { .spec = cases[i].spec };

		assert_int_equal(output_take_records(&output, "journey"), 0);
		assert_string_equal(output.spec, cases[i].taken);
		free(output.own_spec);
	}
}
