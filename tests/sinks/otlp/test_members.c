// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "sinks/otlp/otlp.h"

#include "base/json.h"
#include "lib_test.h"

/* What was read, as text: a text is in quotes, true is yes, and what is in brackets has a comma behind each. */
static void print_value(char **to, struct value *value)
{
	struct value element;
	struct member member;

	switch (value->type) {
	case VALUE_IS_BOOL:
		*to += sprintf(*to, "%s,", value->number ? "yes" : "no");
		break;
	case VALUE_IS_TEXT:
		*to += sprintf(*to, "'%.*s',", (int)value->len, value->text);
		break;
	case VALUE_IS_ARRAY:
		*to += sprintf(*to, "[");
		while (value_next(&value->elements, &element))
			print_value(to, &element);
		*to += sprintf(*to, "],");
		break;
	case VALUE_IS_OBJECT:
		*to += sprintf(*to, "{");
		while (member_next(&value->elements, &member)) {
			*to += sprintf(*to, "%.*s=", (int)member.raw.key_len,
				       member.raw.key);
			print_value(to, &member.value);
		}
		*to += sprintf(*to, "},");
		break;
	default:
		assert_int_equal(value->type, VALUE_IS_INT);
		*to += sprintf(*to, "%lld,", (long long)value->number);
	}
}

TEST(members_are_read_in_order)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{ "{\"A\":1,\"Bc\":\"x\",\"D\":[],\"E\":[\"a]\\\"\",\"b\"]}",
		  "{A=1,Bc='x',D=[],E=['a]\"','b',],}," },
		{ "{\"F\":[1,-2],\"G\":-9223372036854775808,"
		  "\"H\":18446744073709551615}",
		  "{F=[1,-2,],G=-9223372036854775808,H=-1,}," }, /* all 64 bits */
		{ "{\"A\":[{\"B\":\"]}\\\"\",\"C\":[1]},{},{\"D\":2}],\"E\":true,"
		  "\"F\":false,\"G\":{\"H\":{}},\"I\":3}",
		  "{A=[{B=']}\"',C=[1,],},{},{D=2,},],E=yes,F=no,G={H={},},I=3,}," },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[256], found[256], *to = found;
		struct value object = { .type = VALUE_IS_OBJECT,
					.elements = text + 1 };

		strcpy(text, cases[i].text);
		print_value(&to, &object);
		assert_string_equal(found, cases[i].expected);
	}
}

/* Arrays that are not read to their end. */
TEST(objects_are_read_by_themselves)
{
	char text[] = "{\"A\":[{\"B\":1,\"C\":[1]},{\"D\":2}],\"E\":3}";
	char *at = text + 1;
	struct member member, own;
	struct value value;

	assert_true(member_next(&at, &member));
	assert_true(value_next(&member.value.elements, &value));
	assert_true(member_next(&value.elements, &own));
	assert_int_equal(own.value.number, 1);
	assert_true(member_next(&at, &member));
	assert_int_equal(member.value.number, 3);
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
	assert_int_equal(member.value.type, VALUE_IS_TEXT);
	assert_int_equal(member.value.len, strlen(text));
	assert_memory_equal(member.value.text, text, member.value.len);
	assert_false(member_next(&at, &member));
}
