// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Answers of _bulk, in pieces of any size, and texts that are no such answers. */
#include "sinks/http/http.h"

#include "lib_test.h"

struct seen {
	unsigned int n;
	int status[8];
	char reason[8][BULK_TEXT_MAX];
};

static void note_item(void *ctx, int status, const char *reason)
{
	struct seen *seen = ctx;

	assert_in_range(seen->n, 0, 7);
	seen->status[seen->n] = status;
	snprintf(seen->reason[seen->n++], BULK_TEXT_MAX, "%s", reason);
}

static const char mixed[] =
	"{\"took\":30,\"errors\":true,\"items\":["
	"{\"create\":{\"_index\":\"f\",\"_shards\":{\"total\":2,\"status\":7},\"status\":201}},\n"
	"{\"create\":{\"status\":400,\"error\":{\"type\":\"x\",\"reason\":\"a \\\"b\\\" {[,:\","
	"\"caused_by\":{\"reason\":\"inner\",\"status\":1}}}},"
	"{\"create\":{\"error\":\"plain\",\"status\" : 429 }},"
	"{\"create\":{}}]}";

TEST(answer_is_read_in_pieces_of_any_size)
{
	for (size_t cut = 0; cut < sizeof(mixed); cut++) {
		struct bulk_answer answer;
		struct seen seen = { 0 };

		bulk_answer_begin(&answer, note_item, &seen);
		bulk_answer_read(&answer, mixed, cut);
		bulk_answer_read(&answer, mixed + cut, sizeof(mixed) - 1 - cut);
		assert_true(answer.is_answer && answer.has_errors);
		assert_int_equal(seen.n, 4);
		assert_int_equal(seen.status[0], 201);
		assert_string_equal(seen.reason[0], "");
		assert_int_equal(seen.status[1], 400);
		assert_string_equal(seen.reason[1], "a \"b\" {[,:");
		assert_int_equal(seen.status[2], 429);
		assert_string_equal(seen.reason[2], "plain");
		assert_int_equal(seen.status[3], 0);
	}
}

TEST(answer_without_errors_says_so)
{
	static const char text[] = "{\"errors\" : false, \"took\":1}";
	struct bulk_answer answer;
	struct seen seen = { 0 };

	bulk_answer_begin(&answer, note_item, &seen);
	bulk_answer_read(&answer, text, sizeof(text) - 1);
	assert_true(answer.is_answer);
	assert_false(answer.has_errors);
	assert_int_equal(seen.n, 0);
}

TEST(anything_else_is_no_answer)
{
	static const char *const texts[] = {
		"",
		"<html>\"errors\":false</html>",
		"{\"error\":{\"errors\":false},\"status\":400}",
		"[{\"errors\":false}]",
		"]]]]}}}}\"\\",
		"{\"items\":[{\"create\":{\"status\":201",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct bulk_answer answer;
		struct seen seen = { 0 };

		bulk_answer_begin(&answer, note_item, &seen);
		bulk_answer_read(&answer, texts[i], strlen(texts[i]));
		if (i != 1)
			assert_false(answer.is_answer);
		assert_int_equal(seen.n, 0);
	}
}

TEST(long_text_is_cut)
{
	struct bulk_answer answer;
	struct seen seen = { 0 };
	char text[3000];

	memset(text, 'a', sizeof(text));
	bulk_answer_begin(&answer, note_item, &seen);
	bulk_answer_read(&answer, "{\"", 2);
	bulk_answer_read(&answer, text, sizeof(text));
	bulk_answer_read(&answer, "\":1,\"errors\":true}", 18);
	assert_true(answer.is_answer && answer.has_errors);
}
