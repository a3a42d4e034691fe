// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "sinks/otlp/otlp.h"

#include "lib_test.h"

#define ANSWER(bytes) bytes, sizeof(bytes) - 1

TEST(answers_say_how_many_are_refused)
{
	static const struct {
		const char *bytes;
		size_t len;
		uint64_t rejected;
		const char *message;
	} cases[] = {
		{ ANSWER(""), 0, "" },
		{ ANSWER("\x0a\x00"), 0, "" },
		{ ANSWER("\x0a\x02\x08\x07"), 7, "" },
		{ ANSWER("\x0a\x07\x08\xac\x02\x12\x02no"), 300, "no" },
		{ ANSWER("\x0a\x06\x12\x02no\x08\x05"), 5, "no" }, /* any order */
		{ ANSWER("\x0a\x04\x12\x02n\x01"), 0, "n?" },
		/* Fields of later versions. */
		{ ANSWER("\x10\x01\x0a\x10\x1d....\x21........\x08\x03"), 3, "" },
		{ ANSWER("\x0a\x07\x1d....\x08\x03\x22\x01x"), 3, "" },
		/* -1 */
		{ ANSWER("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		  0, "" },
		{ ANSWER("Ok."), 0, NULL },
		{ ANSWER("{\"partialSuccess\":{}}"), 0, NULL },
		{ ANSWER("<html>"), 0, NULL },
		{ ANSWER("\x0a\x02\x08"), 0, NULL },
		{ ANSWER("\x0a\x01\x08"), 0, NULL },
	};
	struct otlp_answer answer;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool is_answer =
			otlp_read_answer(cases[i].bytes, cases[i].len, &answer);

		assert_int_equal(is_answer, cases[i].message != NULL);
		if (!is_answer)
			continue;
		assert_int_equal(answer.rejected, cases[i].rejected);
		assert_string_equal(answer.message, cases[i].message);
	}
}

/* In memory of their own, so that a read beyond their end is seen. */
TEST(any_bytes_are_read_within_their_bounds)
{
	struct otlp_answer answer;

	srand(1);
	for (int i = 0; i < 100 * 1000; i++) {
		size_t len = (size_t)rand() % 24;
		uint8_t *bytes = malloc(len ?: 1);

		for (size_t j = 0; j < len; j++)
			bytes[j] = (uint8_t)(rand() % 4 ? rand() % 32 : rand());
		otlp_read_answer(bytes, len, &answer);
		assert_true(strlen(answer.message) < sizeof(answer.message));
		free(bytes);
	}
}
