// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records of files, and what is between them, also in damaged ones. */
#include "lib_seed.h"
#include "lib_test.h"

#include <sys/mman.h>

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

/* Records as "R", what is damaged as "D", each with its line, text and a "|"; a NUL as "@" */
static void show(struct record_input *input, char shown[SHOWN_MAX])
{
	static const char kinds[] = { [PIECE_RECORD] = 'R', [PIECE_DAMAGED] = 'D' };
	struct record_piece piece;
	size_t len = 0;

	*shown = '\0';
	while (record_input_next(input, &piece) > 0) {
		if (piece.kind == PIECE_BETWEEN)
			continue;
		len += (size_t)snprintf(shown + len, SHOWN_MAX - len,
					"%c%d:", kinds[piece.kind],
					(int)input->number);
		for (size_t i = 0; i < piece.len; i++)
			shown[len++] = piece.text[i] ? piece.text[i] : '@';
		shown[len++] = '|';
		shown[len] = '\0';
	}
}

static void assert_shown(const char *text, const char *expected)
{
	struct record_input input = open_text(text, strlen(text));
	char shown[SHOWN_MAX];

	show(&input, shown);
	assert_string_equal(shown, expected);
	record_input_close(&input);
}

TEST(records_are_found_in_lines_and_arrays)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{ "", "" },
		{ "\n \t\n[\n]\n", "" },
		{ "{\"a\":1}", "R1:{\"a\":1}|" },
		{ "{\"a\":1}\r\n\n {} \n", "R1:{\"a\":1}|R3:{}|" },
		{ "[\n{\n\t\"a\" : {\"b\" : [1,\n2]}\n}\n,\n{\"c\":\"}\\\"{\"}\n]\n",
		  "R2:{\n\t\"a\" : {\"b\" : [1,\n2]}\n}|R7:{\"c\":\"}\\\"{\"}|" },
		{ "[{\"a\":1},{\"b\":2}]", "R1:{\"a\":1}|R1:{\"b\":2}|" },
		{ "\x1e{\"a\":1}\n\x1e{\"a\":2}\n", "R1:{\"a\":1}|R2:{\"a\":2}|" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_shown(rows[i].text, rows[i].shown);
}

TEST(damage_ends_with_its_lines)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{ "nonsense\n{\"a\":1}\n7", "D1:nonsense\n|R2:{\"a\":1}|D3:7|" },
		{ "[1]\n{\"a\":1}", "D1:1]\n|R2:{\"a\":1}|" },
		{ "{\"a\":1,\n{\"a\":2}\n", "D1:{\"a\":1,\n|R2:{\"a\":2}|" },
		{ "{\"a\":\n\n{\"a\":2}\n", "D1:{\"a\":\n\n|R3:{\"a\":2}|" },
		{ "{\"a\":1\nx\n{\"a\":2}", "D1:{\"a\":1\n|D2:x\n|R3:{\"a\":2}|" },
		{ "{\"a\":\"1\n{\"a\":2}\n", "D1:{\"a\":\"1\n|R2:{\"a\":2}|" },
		{ "{\"a\":1}}}x{\n{\"a\":2}",
		  "R1:{\"a\":1}|D1:}}x{\n|R2:{\"a\":2}|" },
		{ "{a:1} x\n{\"a\":2}", "D1:{a:1}|R2:{\"a\":2}|" },
		{ "{\"a\":[}\n{\"a\":2}]}\n{\"a\":3}",
		  "D1:{\"a\":[}\n|R2:{\"a\":2}|D2:}\n|R3:{\"a\":3}|" },
		{ "{\"a\":1", "D1:{\"a\":1|" },
		{ "{{{{{{{{", "D1:{{{{{{{{|" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_shown(rows[i].text, rows[i].shown);
}

TEST(bytes_of_0_are_damage)
{
	static const char text[] = "x\0y\n{\"a\":\0 1}\n{\"a\":2}\0";
	struct record_input input = open_text(text, sizeof(text) - 1);
	char shown[SHOWN_MAX];

	show(&input, shown);
	assert_string_equal(shown, "D1:x@y\n|D2:{\"a\":@ 1}|R3:{\"a\":2}|D3:@|");
	record_input_close(&input);
}

/* A line of so many bytes, and a good one. */
static void check_long_line(const char *begin, char filler, const char *end,
			    size_t len, const char *wanted)
{
	const size_t size = len + 9;
	char *text = malloc(size + 1), shown[16] = "";
	struct record_input input;
	struct record_piece piece;
	size_t total = 0, n = 0;

	assert_non_null(text);
	memset(text, filler, len);
	memcpy(text, begin, strlen(begin));
	memcpy(text + len - strlen(end), end, strlen(end));
	memcpy(text + len, "\n{\"a\":1}\n", 10);
	input = open_text(text, size);
	while (record_input_next(&input, &piece) > 0) {
		assert_memory_equal(piece.text, text + total, piece.len);
		total += piece.len;
		if (piece.kind != PIECE_BETWEEN && n < sizeof(shown) - 1)
			shown[n++] = piece.kind == PIECE_RECORD ? 'R' : 'D';
	}
	assert_int_equal(total, size);
	assert_string_equal(shown, wanted);
	record_input_close(&input);
	free(text);
}

TEST(records_have_a_limit)
{
	check_long_line("{\"a\":\"", 'a', "\"}", INPUT_RECORD_MAX, "RR");
	check_long_line("{\"a\":\"", 'a', "\"}", INPUT_RECORD_MAX + 1, "DR");
	check_long_line("{\"a\":\"", 'a', "\"}", 5 * INPUT_RECORD_MAX, "DR");
	check_long_line("x", 'x', "x", 5 * INPUT_RECORD_MAX, "DR");
	check_long_line("", ' ', "", 5 * INPUT_RECORD_MAX, "R");
	check_long_line("{", '{', "", INPUT_RECORD_MAX, "DR");
	check_long_line("{\"a\":", '[', "", 5 * INPUT_RECORD_MAX, "DR");
}

/* What is there is passed on at once. */
TEST(pieces_of_a_pipe_are_not_waited_for)
{
	struct record_input input = open_text("", 0);
	struct record_piece piece;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	close(input.fd);
	input.fd = fds[0];
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write(fds[1], "{\"a\":1}\n", 8), 8);
		assert_int_equal(record_input_next(&input, &piece), 1);
		assert_int_equal(piece.kind, PIECE_RECORD);
		assert_int_equal(record_input_next(&input, &piece), 1);
		assert_int_equal(piece.kind, PIECE_BETWEEN);
		assert_memory_equal(piece.text, "\n", piece.len);
	}
	close(fds[1]);
	assert_int_equal(record_input_next(&input, &piece), 0);
	record_input_close(&input);
}

TEST(a_directory_cannot_be_read)
{
	struct record_input input;
	struct record_piece piece;

	assert_int_equal(record_input_open(&input, "/nonexistent/x"), -ENOENT);
	record_input_close(&input);
	assert_int_equal(record_input_open(&input, "/"), 0);
	assert_int_equal(record_input_next(&input, &piece), -EISDIR);
	record_input_close(&input);
}

static const char good[] = "{\"a\":[1,{\"b\":\"}\"}],\n \"c\":null}\n";

/* @return how many records of @text, which is damaged somewhere, are found */
static int count_whole(const char *text, size_t len)
{
	struct record_input input = open_text(text, len);
	struct record_piece piece;
	size_t total = 0;
	int n = 0;

	while (record_input_next(&input, &piece) > 0) {
		assert_in_range(piece.len, 1, len - total);
		assert_memory_equal(piece.text, text + total, piece.len);
		total += piece.len;
		n += piece.kind == PIECE_RECORD &&
		     piece.len == sizeof(good) - 2 &&
		     !memcmp(piece.text, good, piece.len);
	}
	assert_int_equal(total, len);
	record_input_close(&input);
	return n;
}

/* All bytes come out, and a damaged byte takes two records at most. */
TEST(damage_at_random_takes_few_records)
{
	enum { RECORDS = 20 };
	char text[RECORDS * (sizeof(good) - 1)];

	for (int round = 0; round < ROUNDS; round++) {
		const int damages = 1 + test_below(4);
		int n;

		for (int i = 0; i < RECORDS; i++)
			memcpy(text + i * (sizeof(good) - 1), good,
			       sizeof(good) - 1);
		for (int i = 0; i < damages; i++)
			text[test_below(sizeof(text))] =
				test_below(2) ?
					"{}[]\",:\\\n\0x"[test_below(11)] :
					(char)test_random();
		n = count_whole(text, sizeof(text));
		assert_in_range(n, RECORDS - 2 * damages, RECORDS);
	}
}
