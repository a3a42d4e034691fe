/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Tables of records that come one by one: with random texts, in terminals of all widths.
 * NETOBS_TEST_SEED repeats a run.
 */
#include "lib_seed.h"
#include "lib_stdout.h"
#include "lib_test.h"

#include "cli/view/row.h"
#include "cli/view/view_output.h"

enum { COLUMNS = 4, LINES = 6, TEXT_MAX = 60 };

struct line {
	char texts[COLUMNS][TEXT_MAX + 1];
};

#define SOME_COLUMNS(_, type)                       \
	_(type, NAME, "NAME", left, 0, 8, 12,       \
	  snprintf(buf, size, "%s", row->texts[0])) \
	_(type, NUMBER, "NUMBER", right, 1, 0, 9,   \
	  snprintf(buf, size, "%s", row->texts[1])) \
	_(type, PLACE, "PLACE", left, 0, 8, 21,     \
	  snprintf(buf, size, "%s", row->texts[2])) \
	_(type, REST, "REST", left, 0, 4, 16,       \
	  snprintf(buf, size, "%s", row->texts[3]))

/* clang-format off */
SOME_COLUMNS(TABLE_TEXT, struct line)

static const struct column some_columns[COLUMNS] = { SOME_COLUMNS(TABLE_COLUMN, ) };
/* clang-format on */

static struct line lines[LINES];

static void make_texts(void)
{
	for (int line = 0; line < LINES; line++)
		for (int i = 0; i < COLUMNS; i++) {
			char *text = lines[line].texts[i];
			const int len = 1 + test_below(TEXT_MAX);

			for (int k = 0; k < len; k++)
				text[k] = (char)('a' + test_below(26));
			text[len] = '\0';
		}
}

/* The table of these, @width columns wide; NULL: as wide as it gets. */
static char *table_of(const char *width)
{
	struct output output = { 0 };
	void *out;
	char *text;

	fflush(stdout);
	stdout_make_pipe(&out);
	if (width)
		setenv("COLUMNS", width, 1);
	else
		unsetenv("COLUMNS");
	assert_int_equal(stream_open_stdout(&output.stream), 0);
	assert_int_equal(row_table_open(&output, some_columns, COLUMNS), 0);
	for (int line = 0; line < LINES; line++)
		row_table_write(&output, (const void *)&lines[line]);
	row_table_close(&output);
	stream_close(&output.stream);
	text = stdout_written(out);
	assert_true(*text);
	stdout_restore(&out);
	return text;
}

TEST(lines_fit_the_terminal)
{
	for (int width = 24; width < 250; width++) {
		char number[16], *rest = NULL;
		int n = 0;

		make_texts();
		snprintf(number, sizeof(number), "%d", width);
		for (char *line = strtok_r(table_of(number), "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest)) {
			assert_true(row_text_width(line) <= width);
			n++;
		}
		assert_int_equal(n, 1 + LINES);
	}
}

TEST(nothing_is_cut_elsewhere)
{
	for (int round = 0; round < 50; round++) {
		char *rest = NULL, *line;

		make_texts();
		line = strtok_r(table_of(NULL), "\n", &rest);
		assert_non_null(strstr(line, "REST"));
		for (int i = 0; i < LINES; i++) {
			line = strtok_r(NULL, "\n", &rest);
			assert_non_null(line);
			for (int k = 0; k < COLUMNS; k++)
				assert_non_null(strstr(line, lines[i].texts[k]));
		}
	}
}

/* A text that is longer than the common ones has the room that there is. */
TEST(room_is_used)
{
	const char *address = "[2001:db8:1:2:3:4:5:6]:65535";

	make_texts();
	for (int line = 0; line < LINES; line++)
		for (int i = 0; i < COLUMNS; i++)
			snprintf(lines[line].texts[i], TEXT_MAX, "%s",
				 i == 2 && line ? address : "short");
	assert_non_null(strstr(table_of("80"), address));
	assert_null(strstr(table_of("50"), address));
}
