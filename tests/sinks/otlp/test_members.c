// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "sinks/otlp/otlp.h"

#include "base/json.h"
#include "lib_test.h"

static void assert_text(const struct value *value, const char *text)
{
	assert_int_equal(value->type, VALUE_IS_TEXT);
	assert_int_equal(value->len, strlen(text));
	assert_memory_equal(value->text, text, value->len);
}

TEST(members_are_read_in_order)
{
	char text[] = "{\"A\":1,\"Bc\":\"x\",\"D\":[],\"E\":[\"a]\\\"\",\"b\"],"
		      "\"F\":[1,-2],\"G\":-9223372036854775808,"
		      "\"H\":18446744073709551615}";
	char *at = text + 1;
	struct member member;
	struct value value;

	assert_true(member_next(&at, &member));
	assert_int_equal(member.raw.key_len, 1);
	assert_int_equal(member.value.type, VALUE_IS_INT);
	assert_int_equal(member.value.number, 1);
	assert_true(member_next(&at, &member));
	assert_memory_equal(member.raw.key, "Bc", 2);
	assert_text(&member.value, "x");
	assert_true(member_next(&at, &member));
	assert_int_equal(member.value.type, VALUE_IS_ARRAY);
	assert_false(value_next(&member.value.elements, &value));
	assert_true(member_next(&at, &member));
	assert_true(value_next(&member.value.elements, &value));
	assert_text(&value, "a]\"");
	assert_true(value_next(&member.value.elements, &value));
	assert_text(&value, "b");
	assert_false(value_next(&member.value.elements, &value));
	assert_true(member_next(&at, &member));
	assert_true(value_next(&member.value.elements, &value));
	assert_int_equal(value.number, 1);
	assert_true(value_next(&member.value.elements, &value));
	assert_int_equal(value.number, -2);
	assert_false(value_next(&member.value.elements, &value));
	assert_true(member_next(&at, &member));
	assert_true(member.value.number == INT64_MIN);
	assert_true(member_next(&at, &member));
	assert_true((uint64_t)member.value.number == UINT64_MAX);
	assert_false(member_next(&at, &member));
}

/* Whatever the writer escapes, the reader gets back: any code point below 0x800, and more. */
TEST(texts_are_what_was_written)
{
	char text[1024], buf[8192], *at;
	struct member member;
	struct json json;
	size_t len = 0;

	for (unsigned int c = 1; c < 0x80; c++)
		text[len++] = (char)c;
	for (unsigned int c = 0x80; c < 0x200; c++) {
		text[len++] = (char)(0xc0 | c >> 6);
		text[len++] = (char)(0x80 | (c & 0x3f));
	}
	strcpy(text + len, "\xe2\x82\xac\xf0\x9f\x98\x80");
	json_begin(&json, buf, sizeof(buf));
	json_open(&json, '{');
	json_key_string(&json, "A", text);
	json_close(&json, '}');
	assert_true(json_end(&json) > 0);
	at = buf + 1;
	assert_true(member_next(&at, &member));
	assert_text(&member.value, text);
	assert_false(member_next(&at, &member));
}

TEST(objects_are_read_by_themselves)
{
	char text[] =
		"{\"A\":[{\"B\":\"]}\\\"\",\"C\":[1]},{},{\"D\":2}],\"E\":true,"
		"\"F\":false,\"G\":{\"H\":{}},\"I\":3}";
	char *at = text + 1, *inner;
	struct member member, own;
	struct value value;

	assert_true(member_next(&at, &member));
	assert_int_equal(member.value.type, VALUE_IS_ARRAY);
	inner = member.value.elements;
	assert_true(value_next(&inner, &value));
	assert_int_equal(value.type, VALUE_IS_OBJECT);
	assert_true(member_next(&value.elements, &own));
	assert_text(&own.value, "]}\"");
	assert_true(member_next(&value.elements, &own));
	assert_int_equal(own.value.type, VALUE_IS_ARRAY);
	assert_false(member_next(&value.elements, &own));
	assert_true(value_next(&inner, &value));
	assert_int_equal(value.type, VALUE_IS_OBJECT);
	assert_false(member_next(&value.elements, &own));
	assert_true(value_next(&inner, &value));
	assert_true(member_next(&value.elements, &own));
	assert_int_equal(own.value.number, 2);
	assert_false(value_next(&inner, &value));
	for (int64_t expected = 1; expected >= 0; expected--) {
		assert_true(member_next(&at, &member));
		assert_int_equal(member.value.type, VALUE_IS_BOOL);
		assert_int_equal(member.value.number, expected);
	}
	assert_true(member_next(&at, &member));
	assert_int_equal(member.value.type, VALUE_IS_OBJECT);
	assert_true(member_next(&at, &member));
	assert_int_equal(member.value.number, 3);
	assert_false(member_next(&at, &member));
}
