/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Values of JSON texts, and texts that are none. */
#include "lib_test.h"

#include "base/json_reader.h"

TEST(values_are_found_by_their_path)
{
	struct json_value value = json_parse(
		" {\"a\":{\"b\":[1,-2,{\"c\":3}],\"b2\":true},\n"
		"  \"n\" : 18446744073709551615, \"e\":{}, \"s\":\"x\"} ");
	char text[8];

	assert_non_null(value.at);
	assert_true(json_number(json_get(value, "n")) == UINT64_MAX);
	assert_true(json_is_true(json_get(value, "a.b2")));
	assert_string_equal(json_get_text(value, "s", text, sizeof(text)), "x");
	assert_int_equal(json_length(json_get(value, "e")), 2);
	assert_null(json_get(value, "a.x").at);
	assert_null(json_get(value, "n.x").at);
	assert_null(json_get(value, "a.b.c").at);
	assert_int_equal(json_number(json_get(value, "s")), 0);
	assert_string_equal(json_get_text(value, "n", text, sizeof(text)), "");
}

TEST(numbers_end_at_their_limits)
{
	static const struct {
		const char *text;
		uint64_t number;
		int64_t with_sign;
	} rows[] = {
		{ "0", 0, 0 },
		{ "18446744073709551616", UINT64_MAX, INT64_MAX },
		{ "9223372036854775807", INT64_MAX, INT64_MAX },
		{ "9223372036854775808", 9223372036854775808U, INT64_MAX },
		{ "-9223372036854775808", 0, INT64_MIN },
		{ "-9223372036854775807", 0, -INT64_MAX },
		{ "-99999999999999999999", 0, INT64_MIN },
		{ "\"7\"", 0, 0 },
		{ "{\"7\":7}", 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct json_value value = json_parse(rows[i].text);

		assert_non_null(value.at);
		assert_true(json_number(value) == rows[i].number);
		assert_true(json_signed(value) == rows[i].with_sign);
	}
}

TEST(items_come_in_their_order)
{
	struct json_value value =
		json_parse("{\"x\":[1, -2,[3 ],4],\"y\":{\"k\":5 , \"l\":6}}");
	struct json_item item = { 0 };
	char key[8];
	int64_t sum = 0;
	int n = 0;

	for (; json_next(json_get(value, "x"), &item); n++)
		sum += json_signed(item.value);
	assert_int_equal(n, 4);
	assert_int_equal(sum, 1 - 2 + 4);
	item = (struct json_item){ 0 };
	assert_true(json_next(json_get(value, "y"), &item));
	assert_true(json_next(json_get(value, "y"), &item));
	assert_string_equal(json_text(item.key, key, sizeof(key)), "l");
	assert_int_equal(json_number(item.value), 6);
	assert_false(json_next(json_get(value, "y"), &item));
	item = (struct json_item){ 0 };
	assert_false(json_next(json_get(value, "z"), &item));
	assert_false(json_next(json_get(value, "x.k"), &item));
}

TEST(strings_are_unescaped)
{
	static const struct {
		const char *json, *text;
	} cases[] = {
		{ "\"\"", "" },
		{ "\"a\\\"\\\\\\/b\"", "a\"\\/b" },
		{ "\"\\b\\f\\n\\r\\t\"", "\b\f\n\r\t" },
		{ "\"\\u0041\\u00e4\\u20AC\"", "A\u00e4\u20ac" },
		{ "\"\\ud83d\\ude00\"", "\U0001f600" },
		{ "\"\\ud83dx\"", "\ufffdx" },
		{ "\"\\ud83d\\u0041\"", "\ufffdA" },
		{ "\"\\ude00\"", "\ufffd" },
		{ "\"0123456789abcdef\"", "0123456789abcde" },	   /* cut */
		{ "\"0123456789abcd\\u20ac\"", "0123456789abcd" }, /* not inside */
	};
	char text[16];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct json_value value = json_parse(cases[i].json);

		assert_non_null(value.at);
		assert_string_equal(json_text(value, text, sizeof(text)),
				    cases[i].text);
	}
}

TEST(what_is_no_json_is_refused)
{
	static const char *const texts[] = {
		"",	 " ",	    "{",	   "}",	      "[1,]",
		"[1 2]", "{\"a\"}", "{\"a\":}",	   "{a:1}",   "{\"a\":1,}",
		"\"",	 "\"\\x\"", "\"\\u12g4\"", "\"\\u12", "\"\n\"",
		"01",	 "-",	    "1.",	   "1e",      "+1",
		"tru",	 "nullx",   "1 2",	   "[1]]",    "\"\\",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		/* Of its own size, so that reading beyond its end is noticed. */
		char *text = strdup(texts[i]);

		assert_null(json_parse(text).at);
		free(text);
	}
	assert_non_null(json_parse("-0.5e+10").at);
	assert_non_null(json_parse("null").at);
}

TEST(nesting_is_limited)
{
	char text[2 * JSON_DEPTH_MAX + 3] = "";

	memset(text, '[', JSON_DEPTH_MAX);
	memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	assert_non_null(json_parse(text).at);
	memset(text, '[', JSON_DEPTH_MAX + 1);
	memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
	assert_null(json_parse(text).at);
}
