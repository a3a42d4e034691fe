/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_test.h"

#include "base/json.h"

TEST(numbers_are_separated_whatever_their_sign)
{
	char text[64];
	struct json json;

	json_begin(&json, text, sizeof(text));
	json_open(&json, '[');
	json_i64(&json, 15);
	json_i64(&json, -15);
	json_i64(&json, INT64_MIN);
	json_u64(&json, 2);
	json_close(&json, ']');
	assert_true(json_end(&json) > 0);
	assert_string_equal(text, "[15,-15,-9223372036854775808,2]");
}

TEST(keys_fit_or_are_left_out)
{
	for (size_t room = 0; room < 20; room++) {
		char *text = malloc(room + 1);
		struct json json;

		json_begin(&json, text, room + 1);
		json_open(&json, '{');
		json_key_u64(&json, "a", 1);
		json_key_u64(&json, "bc", 2);
		json_close(&json, '}');
		if (room < strlen("{\"a\":1,\"bc\":2}")) {
			assert_int_equal(json_end(&json), -ENOBUFS);
		} else {
			assert_true(json_end(&json) > 0);
			assert_string_equal(text, "{\"a\":1,\"bc\":2}");
		}
		free(text);
	}
}

TEST(strings_fit_or_are_left_out)
{
	static const char string[] = "a\"b\\c\x01\xc3\xa9\xff\x7f!~",
			  expected[] =
				  "\"a\\\"b\\\\c\\u0001\xc3\xa9\xef\xbf\xbd\\u007f!~\"";

	for (size_t room = 0; room <= strlen(expected); room++) {
		char *text = malloc(room + 1);
		struct json json;

		json_begin(&json, text, room + 1);
		json_string(&json, string);
		if (room < strlen(expected)) {
			assert_int_equal(json_end(&json), -ENOBUFS);
		} else {
			assert_int_equal(json_end(&json), room);
			assert_string_equal(text, expected);
		}
		free(text);
	}
}

/* What is in UTF-8, and what is not. */
TEST(each_byte_of_a_string_is_itself_or_escaped)
{
	for (int byte = 1; byte < 256; byte++) {
		const char string[] = { 'x', (char)byte, 'y', '\0' };
		char text[32], expected[32];
		struct json json;

		if (byte == '"' || byte == '\\')
			snprintf(expected, sizeof(expected), "\"x\\%cy\"", byte);
		else if (byte < 0x20 || byte == 0x7f)
			snprintf(expected, sizeof(expected), "\"x\\u%04xy\"",
				 byte);
		else if (byte < 0x80)
			snprintf(expected, sizeof(expected), "\"x%cy\"", byte);
		else
			snprintf(expected, sizeof(expected),
				 "\"x\xef\xbf\xbdy\"");
		json_begin(&json, text, sizeof(text));
		json_string(&json, string);
		assert_true(json_end(&json) > 0);
		assert_string_equal(text, expected);
	}
}

/* What follows is not written either, even if it would fit. */
TEST(nothing_follows_what_does_not_fit)
{
	char text[8];
	struct json json;

	json_begin(&json, text, sizeof(text));
	json_open(&json, '[');
	json_string(&json, "too long");
	json_u64(&json, 1);
	json_close(&json, ']');
	assert_int_equal(json_end(&json), -ENOBUFS);
}
