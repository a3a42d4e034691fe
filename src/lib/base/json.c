/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "json.h"

#include <errno.h>
#include <limits.h>

void json_begin(struct json *json, char *buf, size_t size)
{
	*json = (struct json){ .start = buf, .pos = buf, .end = buf };
	if (size == 0)
		json->overflow = true;
	else
		json->end += size - 1;
}

int json_end(struct json *json)
{
	size_t len = (size_t)(json->pos - json->start);

	if (json->overflow || len > INT_MAX)
		return -ENOBUFS;
	*json->pos = '\0';
	return (int)len;
}

void json_i64(struct json *json, int64_t value)
{
	if (value >= 0) {
		json_u64(json, (uint64_t)value);
		return;
	}
	json_separate(json);
	json_put(json, "-", 1);
	json->comma = false;
	json_u64(json, -(uint64_t)value);
}

/* Bytes that stand for themselves in a string. */
static const bool is_plain[UINT8_MAX + 1] = {
	[' ' ... '!'] = true,
	['#' ... '['] = true,
	[']' ... '~'] = true,
};

/* Returns what follows the character. */
static const uint8_t *put_escaped(struct json *json, const uint8_t *s)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t control = utf8_control(s);
	size_t len = utf8_length(s);

	if (*s == '"' || *s == '\\') {
		json_put(json, (char[]){ '\\', (char)*s }, 2);
	} else if (control) { /* of C1, too: JSON is also read on terminals */
		json_put(json, "\\u00", 4);
		json_put(json, (char[]){ hex[control >> 4], hex[control & 15] },
			 2);
	} else if (len) {
		json_put(json, (const char *)s, len);
	} else {
		json_put(json, UTF8_REPLACEMENT, 3);
	}
	return s + (len ? len : 1);
}

void json_string(struct json *json, const char *string)
{
	const uint8_t *s = (const uint8_t *)string;

	json_separate(json);
	json_put(json, "\"", 1);
	while (*s) {
		char *to = json->pos;

		while (is_plain[*s] && to < json->end)
			*to++ = (char)*s++;
		json->pos = to;
		if (*s)
			s = put_escaped(json, s);
	}
	json_put(json, "\"", 1);
}

void json_members(struct json *json, const char *members, size_t len)
{
	json_separate(json);
	json_put(json, members, len);
}

void json_key_open(struct json *json, const char *key, char bracket)
{
	json_key(json, key);
	json_open(json, bracket);
}

void json_key_i64(struct json *json, const char *key, int64_t value)
{
	json_key(json, key);
	json_i64(json, value);
}

void json_key_string(struct json *json, const char *key, const char *string)
{
	json_key(json, key);
	json_string(json, string);
}

void json_key_bool(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	json_put(json, value ? "true" : "false", value ? 4 : 5);
	json->comma = true;
}
