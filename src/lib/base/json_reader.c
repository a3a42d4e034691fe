// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "json_reader.h"

#include "text.h"

#include <stdlib.h>
#include <string.h>

/*
 * An answer may have megabytes, and most of this looks at a few bytes of it: functions of string.h
 * and stdlib.h read all that follows where a sanitizer checks their arguments.
 */

static const char *skip_space(const char *at)
{
	while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')
		at++;
	return at;
}

/* @return what follows @prefix in @at; NULL: @at begins otherwise */
static const char *skip_prefix(const char *at, const char *prefix, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != prefix[i])
			return NULL;
	return at + len;
}

/* ---- Checking: each returns the end of a value; NULL: it is wrong -------------------- */

static const char *check_escape(const char *at)
{
	if (*at != 'u')
		return *at && strchr("\"\\/bfnrt", *at) ? at + 1 : NULL;
	for (int i = 1; i <= 4; i++)
		if (hex_digit(at[i]) < 0)
			return NULL;
	return at + 5;
}

static const char *check_string(const char *at)
{
	if (*at++ != '"')
		return NULL;
	while (at && *at != '"') {
		if ((unsigned char)*at < ' ')
			return NULL;
		at = *at == '\\' ? check_escape(at + 1) : at + 1;
	}
	return at ? at + 1 : NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *at)
{
	while (is_digit(*at))
		at++;
	return at;
}

static const char *check_number(const char *at)
{
	const char *digits = at + (*at == '-');
	const char *end = skip_digits(digits);

	if (end == digits || (*digits == '0' && end > digits + 1))
		return NULL;
	if (*end == '.') {
		digits = end + 1;
		end = skip_digits(digits);
		if (end == digits)
			return NULL;
	}
	if (*end != 'e' && *end != 'E')
		return end;
	digits = end + 1;
	digits += *digits == '+' || *digits == '-';
	end = skip_digits(digits);
	return end == digits ? NULL : end;
}

static const char *check_word(const char *at)
{
	const char *end = skip_prefix(at, "true", 4);

	end = end ?: skip_prefix(at, "false", 5);
	return end ?: skip_prefix(at, "null", 4);
}

static const char *check_value(const char *at, int depth);

static const char *check_key(const char *at)
{
	at = check_string(at);
	if (!at)
		return NULL;
	at = skip_space(at);
	return *at == ':' ? skip_space(at + 1) : NULL;
}

static const char *check_items(const char *at, int depth)
{
	const bool is_object = *at == '{';
	const char close = is_object ? '}' : ']';

	at = skip_space(at + 1);
	if (*at == close)
		return at + 1;
	for (;;) {
		if (is_object)
			at = check_key(at);
		at = at ? check_value(at, depth) : NULL;
		if (!at)
			return NULL;
		at = skip_space(at);
		if (*at == close)
			return at + 1;
		if (*at != ',')
			return NULL;
		at = skip_space(at + 1);
	}
}

static const char *check_value(const char *at, int depth)
{
	if (*at == '{' || *at == '[')
		return depth < JSON_DEPTH_MAX ? check_items(at, depth + 1) : NULL;
	if (*at == '"')
		return check_string(at);
	return check_word(at) ?: check_number(at);
}

struct json_value json_parse(const char *text)
{
	const char *at = skip_space(text);
	const char *end = check_value(at, 0);

	return (struct json_value){ end && !*skip_space(end) ? at : NULL };
}

/* ---- Reading text that was checked ------------------------------------------------- */

bool json_next(struct json_value container, struct json_item *item)
{
	const char *at = item->next;

	if (!container.at || (*container.at != '{' && *container.at != '['))
		return false;
	at = skip_space(at ?: container.at + 1);
	if (*at == ',')
		at = skip_space(at + 1);
	if (*at == '}' || *at == ']')
		return false;
	item->key.at = NULL;
	if (*container.at == '{') {
		item->key.at = at;
		at = check_key(at);
	}
	item->value.at = at;
	item->next = at ? check_value(at, 0) : NULL;
	return item->next;
}

/* Names that are looked for have no escapes. */
static bool is_key(struct json_value key, const char *name, size_t len)
{
	const char *end = key.at ? skip_prefix(key.at + 1, name, len) : NULL;

	return end && *end == '"';
}

static struct json_value find_member(struct json_value object, const char *name,
				     size_t len)
{
	const struct json_value none = { NULL };
	struct json_item item = { 0 };

	while (object.at && *object.at == '{' && json_next(object, &item))
		if (is_key(item.key, name, len))
			return item.value;
	return none;
}

struct json_value json_member(struct json_value object, const char *name)
{
	return find_member(object, name, strlen(name));
}

struct json_value json_get(struct json_value value, const char *path)
{
	while (value.at && *path) {
		const size_t len = strcspn(path, ".");

		value = find_member(value, path, len);
		path += len + (path[len] == '.');
	}
	return value;
}

/* The greatest one for those that are greater. */
static uint64_t read_digits(const char *at)
{
	uint64_t number = 0;

	for (; is_digit(*at); at++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, *at - '0', &number))
			return UINT64_MAX;
	return number;
}

uint64_t json_number(struct json_value value)
{
	return value.at ? read_digits(value.at) : 0;
}

int64_t json_signed(struct json_value value)
{
	const bool is_negative = value.at && *value.at == '-';
	const uint64_t number = is_negative ? read_digits(value.at + 1) :
					      json_number(value);

	if (number > INT64_MAX)
		return is_negative ? INT64_MIN : INT64_MAX;
	return is_negative ? -(int64_t)number : (int64_t)number;
}

size_t json_length(struct json_value value)
{
	return value.at ? (size_t)(check_value(value.at, 0) - value.at) : 0;
}

bool json_is_true(struct json_value value)
{
	return value.at && *value.at == 't';
}

/* ---- Strings ----------------------------------------------------------------------- */

static unsigned int read_hex(const char *at)
{
	char digits[5] = "";

	memcpy(digits, at, 4);
	return (unsigned int)strtoul(digits, NULL, 16);
}

/* The code point of \uXXXX, or of a pair of them. @at is behind the "u". */
static const char *read_code(const char *at, unsigned int *ret_code)
{
	unsigned int code = read_hex(at), low;

	at += 4;
	if (code >= 0xd800 && code < 0xdc00 && at[0] == '\\' && at[1] == 'u') {
		low = read_hex(at + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
			at += 6;
		}
	}
	if (code >= 0xd800 && code < 0xe000)
		code = 0xfffd; /* half of a pair */
	*ret_code = code;
	return at;
}

/* RFC 3629. @return the length */
static size_t write_utf8(unsigned int code, char *to)
{
	if (code < 0x80) {
		to[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		to[0] = (char)(0xc0 | code >> 6);
		to[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		to[0] = (char)(0xe0 | code >> 12);
		to[1] = (char)(0x80 | (code >> 6 & 0x3f));
		to[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | code >> 18);
	to[1] = (char)(0x80 | (code >> 12 & 0x3f));
	to[2] = (char)(0x80 | (code >> 6 & 0x3f));
	to[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* Read one character. @return its end */
static const char *read_char(const char *at, char *to, size_t *ret_len)
{
	static const char escapes[] = "bfnrt", meanings[] = "\b\f\n\r\t";
	const char *escape;
	unsigned int code;

	*ret_len = 1;
	if (*at != '\\') {
		*to = *at;
		return at + 1;
	}
	if (at[1] == 'u') {
		at = read_code(at + 2, &code);
		*ret_len = write_utf8(code, to);
		return at;
	}
	escape = strchr(escapes, at[1]);
	*to = escape ? meanings[escape - escapes] : at[1];
	return at + 2;
}

char *json_text(struct json_value value, char *buf, size_t size)
{
	size_t used = 0;

	if (value.at && *value.at == '"') {
		const char *at = value.at + 1;

		while (*at != '"') {
			char bytes[4];
			size_t len;

			at = read_char(at, bytes, &len);
			if (used + len >= size)
				break;
			memcpy(buf + used, bytes, len);
			used += len;
		}
	}
	buf[used] = '\0';
	return buf;
}
