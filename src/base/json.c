/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "json.h"

#include "text.h"
#include "utf8.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* All of @len bytes or none, so that a cut never leaves half a token. */
static void put(struct json *json, const char *bytes, size_t len)
{
	if (!json_has_room(json, len)) {
		json->overflow = true;
		return;
	}
	memcpy(json->pos, bytes, len);
	json->pos += len;
}

static void put_byte(struct json *json, char byte)
{
	put(json, &byte, 1);
}

static void separate(struct json *json)
{
	if (json->comma)
		put_byte(json, ',');
	json->comma = true;
}

void json_begin(struct json *json, char *buf, size_t size)
{
	*json = (struct json){ .start = buf, .pos = buf, .end = buf };
	if (size == 0)
		json->overflow = true;
	else
		json->end = buf + size - 1;
}

int json_end(struct json *json)
{
	size_t len = (size_t)(json->pos - json->start);

	if (json->overflow || len > INT_MAX)
		return -ENOBUFS;
	*json->pos = '\0';
	return (int)len;
}

void json_open(struct json *json, char bracket)
{
	separate(json);
	put_byte(json, bracket);
	json->comma = false;
}

void json_close(struct json *json, char bracket)
{
	put_byte(json, bracket);
	json->comma = true;
}

void json_key(struct json *json, const char *key)
{
	size_t len = strlen(key);
	char *to = json->pos;

	/* In one go: half of what a record takes is keys. */
	if (json->overflow || (size_t)(json->end - to) < len + 4) {
		json->overflow = true;
		return;
	}
	if (json->comma)
		*to++ = ',';
	*to++ = '"';
	memcpy(to, key, len);
	to += len;
	*to++ = '"';
	*to++ = ':';
	json->pos = to;
	json->comma = false;
}

void json_u64(struct json *json, uint64_t value)
{
	char text[TEXT_U64_MAX + TEXT_SPARE];

	separate(json);
	if (json_has_room(json, sizeof(text)))
		json->pos = text_u64(json->pos, value);
	else
		put(json, text, (size_t)(text_u64(text, value) - text));
}

void json_i64(struct json *json, int64_t value)
{
	if (value >= 0) {
		json_u64(json, (uint64_t)value);
		return;
	}
	separate(json);
	put_byte(json, '-');
	json->comma = false;
	json_u64(json, -(uint64_t)value);
}

void json_decimal(struct json *json, int64_t value, unsigned int decimals)
{
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
	char text[TEXT_U64_MAX + TEXT_SPARE], part[16];
	unsigned int n = decimals < sizeof(part) ? decimals : sizeof(part);

	for (unsigned int i = n; i; i--) {
		part[i - 1] = (char)('0' + rest % 10);
		rest /= 10;
	}
	separate(json);
	if (value < 0)
		put_byte(json, '-');
	put(json, text, (size_t)(text_u64(text, rest) - text));
	if (n) {
		put_byte(json, '.');
		put(json, part, n);
	}
}

static bool is_plain(uint8_t byte)
{
	return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* @s is not plain. Returns what follows the character. */
static const uint8_t *put_escaped(struct json *json, const uint8_t *s)
{
	static const char hex[] = "0123456789abcdef";
	size_t len = utf8_length(s);

	if (*s == '"' || *s == '\\') {
		put(json, (char[]){ '\\', (char)*s }, 2);
	} else if (*s < 0x20) {
		put(json, "\\u00", 4);
		put(json, (char[]){ hex[*s >> 4], hex[*s & 15] }, 2);
	} else if (len) {
		put(json, (const char *)s, len);
	} else {
		put(json, UTF8_REPLACEMENT, 3);
	}
	return s + (len ? len : 1);
}

void json_string(struct json *json, const char *string)
{
	const uint8_t *s = (const uint8_t *)string;

	separate(json);
	put_byte(json, '"');
	while (*s) {
		const uint8_t *start = s;

		while (is_plain(*s))
			s++;
		put(json, (const char *)start, (size_t)(s - start));
		if (*s)
			s = put_escaped(json, s);
	}
	put_byte(json, '"');
}

void json_members(struct json *json, const char *members, size_t len)
{
	separate(json);
	put(json, members, len);
}
