/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_test.h"

#include "base/json.h"
#include "base/text.h"

static const struct row {
	const char *text, *cell, *line, *json, *label, *cut; /* cut to six bytes */
} rows[] = {
	{ "eth0", "eth0", "eth0", "\"eth0\"", "eth0", "eth0" },
	{ "a\x1b[2J", "a?[2J", "a?[2J", "\"a\\u001b[2J\"", "a\\\\x1b[2J",
	  "a\x1b[2J" },
	{ "a\x7f", "a?", "a?", "\"a\\u007f\"", "a\\\\x7f", "a\x7f" },
	{ "\xc2\x9b"
	  "2J",
	  "??2J", "?2J", "\"\\u009b2J\"", "\\\\x9b2J",
	  "\xc2\x9b"
	  "2J" },
	{ "\xc2\xa0", "??", "\xc2\xa0", "\"\xc2\xa0\"", "\xc2\xa0", "\xc2\xa0" },
	{ "a\nb", "a?b", "a?b", "\"a\\u000ab\"", "a\\nb", "a\nb" },
	{ "\"\\", "\"\\", "\"\\", "\"\\\"\\\\\"", "\\\"\\\\", "\"\\" },
	{ "\xff"
	  "a",
	  "?a", "?a",
	  "\"\xef\xbf\xbd"
	  "a\"",
	  "\xef\xbf\xbd"
	  "a",
	  "?a" },
	{ "\x9b", "?", "?", "\"\xef\xbf\xbd\"", "\xef\xbf\xbd", "?" },
	{ "abcde\xc3\xa9", "abcde??", "abcde\xc3\xa9", "\"abcde\xc3\xa9\"",
	  "abcde\xc3\xa9", "abcde" },
	{ "\xe2\x82", "??", "??", "\"\xef\xbf\xbd\xef\xbf\xbd\"",
	  "\xef\xbf\xbd\xef\xbf\xbd", "??" },
};

TEST(each_destination_has_its_form)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[64], label[SAFE_LABEL_ROOM(16)] = "", cut[7] = "";
		struct json json;

		strcpy(text, rows[i].text);
		safe_cell(text);
		assert_string_equal(text, rows[i].cell);
		strcpy(text, rows[i].text);
		safe_line(text);
		assert_string_equal(text, rows[i].line);
		json_begin(&json, text, sizeof(text));
		json_string(&json, rows[i].text);
		assert_true(json_end(&json) > 0);
		assert_string_equal(text, rows[i].json);
		label[safe_label(label, rows[i].text, 16)] = '\0';
		assert_string_equal(label, rows[i].label);
		safe_utf8_cut(cut, 6, rows[i].text, strlen(rows[i].text));
		assert_string_equal(cut, rows[i].cut);
	}
}

static void check_utf8(const char *text, bool has_controls)
{
	const uint8_t *s = (const uint8_t *)text;
	size_t len;

	for (; *s; s += len) {
		len = utf8_length(s);
		assert_true(len > 0);
		assert_true(has_controls || !utf8_control(s));
	}
}

/* All pairs of bytes, between others. */
TEST(any_bytes_are_made_safe)
{
	for (unsigned int pair = 0; pair < 1 << 16; pair++) {
		const char text[] = { (char)0xc2, (char)(pair >> 8), (char)pair,
				      'x', 0 };
		char copy[sizeof(text)], label[SAFE_LABEL_ROOM(2)] = "";

		memcpy(copy, text, sizeof(text));
		safe_line(copy);
		check_utf8(copy, false);
		memcpy(copy, text, sizeof(text));
		safe_cell(copy);
		check_utf8(copy, false);
		assert_int_equal(strlen(copy), strlen(text));
		for (size_t most = 0; most <= 2; most++) {
			char *end = label + safe_label(label, text, most);

			assert_true(end < label + sizeof(label));
			*end = '\0';
			check_utf8(label, false);
		}
		for (size_t size = 0; size <= 5; size++) {
			memset(copy, 0, sizeof(copy));
			safe_utf8_cut(copy, size, text, 4);
			assert_true(strlen(copy) <= size);
			check_utf8(copy, true);
		}
	}
}

TEST(a_long_label_ends_in_dots)
{
	char label[SAFE_LABEL_ROOM(3)];

	assert_int_equal(safe_label(label, "abc", 3), 3);
	assert_int_equal(safe_label(label, "abcd", 3), 6);
	assert_memory_equal(label, "abc...", 6);
}
