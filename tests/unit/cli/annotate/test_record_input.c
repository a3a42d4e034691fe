// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records of files, also of damaged ones. */
#include "lib_seed.h"
#include "lib_test.h"

#include <sys/mman.h>

#include "base/text.h"
#include "cli/annotate/record_input.h"

enum { SHOWN_MAX = 1024, ROUNDS = 2000 };

static struct record_input open_text(const char *text, size_t len)
{
	struct record_input input;

	assert_int_equal(record_input_open(&input, "/dev/null"), 0);
	close(input.fd);
	input.fd = memfd_create("records", MFD_CLOEXEC);
	assert_int_equal(write(input.fd, text, len), len);
	assert_int_equal(lseek(input.fd, 0, SEEK_SET), 0);
	return input;
}

/* Records as "R", what is damaged as "D", each with its number, text and a "|"; a NUL as "@" */
static void assert_shown(const char *text, size_t len, const char *expected)
{
	struct record_input input = open_text(text, len);
	char shown[SHOWN_MAX] = "";
	struct record_line line;

	while (record_input_next(&input, &line) > 0) {
		if (line.kind == LINE_BLANK)
			continue;
		text_append(shown, sizeof(shown),
			    "%c%d:", line.kind == LINE_RECORD ? 'R' : 'D',
			    (int)input.number);
		for (size_t i = 0; i < line.len; i++)
			text_append(shown, sizeof(shown), "%c",
				    line.text[i] ?: '@');
		text_append(shown, sizeof(shown), "|");
	}
	assert_string_equal(shown, expected);
	record_input_close(&input);
}

#define ROW(text, shown)                      \
	{                                     \
		text, sizeof(text) - 1, shown \
	}

TEST(records_are_lines_with_an_object)
{
	static const struct {
		const char *text;
		size_t len;
		const char *shown;
	} rows[] = {
		ROW("", ""),
		ROW("\n \t\r\n\n", ""),
		ROW("{\"a\":1}", "R1:{\"a\":1}|"),
		ROW("{\"a\":1}\r\n\n {} \n", "R1:{\"a\":1}\r|R3: {} |"),
		ROW("{\"c\":\"}\\\"{\"}\n", "R1:{\"c\":\"}\\\"{\"}|"),
		ROW("nonsense\n{\"a\":1}\n7", "D1:nonsense|R2:{\"a\":1}|D3:7|"),
		ROW("[1]\n{\"a\":1}", "D1:[1]|R2:{\"a\":1}|"),
		ROW("{\"a\":\n{\"a\":2}\n", "D1:{\"a\":|R2:{\"a\":2}|"),
		ROW("{\"a\":1}}}x{\n{\"a\":2}", "D1:{\"a\":1}}}x{|R2:{\"a\":2}|"),
		ROW("{\"a\":1", "D1:{\"a\":1|"),
		ROW("{{{{{{{{", "D1:{{{{{{{{|"),
		ROW("x\0y\n{\"a\":\0 1}\n{\"a\":2}\0",
		    "D1:x@y|D2:{\"a\":@ 1}|D3:{\"a\":2}@|"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_shown(rows[i].text, rows[i].len, rows[i].shown);
}

/* Read all lines, which are all bytes of @text. @return in @shown their kinds, but for blank ones */
static void read_all(const char *text, size_t len, char *shown, size_t size)
{
	struct record_input input = open_text(text, len);
	struct record_line line;
	size_t total = 0, n = 0;

	while (record_input_next(&input, &line) > 0) {
		assert_true(line.len + line.has_end <= len - total);
		assert_memory_equal(line.text, text + total, line.len);
		total += line.len;
		if (line.has_end)
			assert_int_equal(text[total++], '\n');
		if (line.kind != LINE_BLANK && n < size - 1)
			shown[n++] = line.kind == LINE_RECORD ? 'R' : 'D';
	}
	shown[n] = '\0';
	assert_int_equal(total, len);
	record_input_close(&input);
}

/* A line of so many bytes, and a good one. */
static void check_long_line(const char *begin, char filler, const char *end,
			    size_t len, const char *wanted)
{
	const size_t size = len + 9;
	char *text = malloc(size + 1), shown[16];

	assert_non_null(text);
	memset(text, filler, len);
	memcpy(text, begin, strlen(begin));
	memcpy(text + len - strlen(end), end, strlen(end));
	memcpy(text + len, "\n{\"a\":1}\n", 10);
	read_all(text, size, shown, sizeof(shown));
	assert_string_equal(shown, wanted);
	free(text);
}

TEST(records_have_a_limit)
{
	check_long_line("{\"a\":\"", 'a', "\"}", INPUT_RECORD_MAX, "RR");
	check_long_line("{\"a\":\"", 'a', "\"}", INPUT_RECORD_MAX + 1, "DR");
	check_long_line("{\"a\":\"", 'a', "\"}", 5 * INPUT_RECORD_MAX, "DR");
	check_long_line("x", 'x', "x", 5 * INPUT_RECORD_MAX, "DR");
	check_long_line("{", '{', "", INPUT_RECORD_MAX, "DR");
	check_long_line("{\"a\":", '[', "", 5 * INPUT_RECORD_MAX, "DR");
}

/* What is there is passed on at once. */
TEST(lines_of_a_pipe_are_not_waited_for)
{
	struct record_input input = open_text("", 0);
	struct record_line line;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	close(input.fd);
	input.fd = fds[0];
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write(fds[1], "{\"a\":1}\n", 8), 8);
		assert_int_equal(record_input_next(&input, &line), 1);
		assert_int_equal(line.kind, LINE_RECORD);
		assert_true(line.has_end);
	}
	close(fds[1]);
	assert_int_equal(record_input_next(&input, &line), 0);
	record_input_close(&input);
}

TEST(a_directory_cannot_be_read)
{
	struct record_input input;
	struct record_line line;

	assert_int_equal(record_input_open(&input, "/nonexistent/x"), -ENOENT);
	record_input_close(&input);
	assert_int_equal(record_input_open(&input, "/"), 0);
	assert_int_equal(record_input_next(&input, &line), -EISDIR);
	record_input_close(&input);
}

/* All bytes come out, and a damaged byte takes two records at most. */
TEST(damage_at_random_takes_few_records)
{
	enum { RECORDS = 20 };
	static const char good[] = "{\"a\":[1,{\"b\":\"}\"}], \"c\":null}\n";
	char text[RECORDS * (sizeof(good) - 1)], shown[4 * RECORDS];

	for (int round = 0; round < ROUNDS; round++) {
		const int damages = 1 + test_below(4);
		int n = 0;

		for (int i = 0; i < RECORDS; i++)
			memcpy(text + i * (sizeof(good) - 1), good,
			       sizeof(good) - 1);
		for (int i = 0; i < damages; i++)
			text[test_below(sizeof(text))] =
				test_below(2) ?
					"{}[]\",:\\\n\0x"[test_below(11)] :
					(char)test_random();
		read_all(text, sizeof(text), shown, sizeof(shown));
		for (const char *at = shown; *at; at++)
			n += *at == 'R';
		assert_in_range(n, RECORDS - 2 * damages, RECORDS);
	}
}
