/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "json.h"

#include "text.h"
#include "utf8.h"

#include <errno.h>
#include <limits.h>
#include <netobs/flow.h>
#include <string.h>

static const char hex[] = "0123456789abcdef";

/* All of @len bytes or none, so that a cut never leaves half a token. */
static void put(struct json *json, const char *bytes, size_t len)
{
	if (json->overflow || (size_t)(json->end - json->pos) < len) {
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

static const char pairs[] =
	"00010203040506070809101112131415161718192021222324252627282930313233"
	"34353637383940414243444546474849505152535455565758596061626364656667"
	"6869707172737475767778798081828384858687888990919293949596979899";

/* Digits of @value, right-aligned before @end; returns the first. */
static char *digits(uint64_t value, char *end)
{
	for (; value >= 100; value /= 100) {
		end -= 2;
		memcpy(end, pairs + value % 100 * 2, 2);
	}
	if (value >= 10) {
		end -= 2;
		memcpy(end, pairs + value * 2, 2);
		return end;
	}
	*--end = (char)('0' + value);
	return end;
}

void json_u64(struct json *json, uint64_t value)
{
	enum { MOST = 20 };
	char buf[2 * MOST], *end = buf + MOST, *first = digits(value, end);

	separate(json);
	if (json->overflow || json->end - json->pos < MOST) {
		put(json, first, (size_t)(end - first));
		return;
	}
	/* A length that the compiler knows: the rest is written over. */
	memcpy(json->pos, first, MOST);
	json->pos += end - first;
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
	char buf[32], *end = buf + sizeof(buf), *first = end;

	for (unsigned int i = 0; i < decimals && i < 10; i++) {
		*--first = (char)('0' + rest % 10);
		rest /= 10;
	}
	if (first != end)
		*--first = '.';
	first = digits(rest, first);
	if (value < 0)
		*--first = '-';
	separate(json);
	put(json, first, (size_t)(end - first));
}

void json_string(struct json *json, const char *string)
{
	const uint8_t *s = (const uint8_t *)string;

	separate(json);
	put_byte(json, '"');
	while (*s) {
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
		s += len ? len : 1;
	}
	put_byte(json, '"');
}

void json_mac(struct json *json, const uint8_t mac[6])
{
	char text[19], *p = text;

	*p++ = '"';
	for (int i = 0; i < 6; i++) {
		*p++ = hex[mac[i] >> 4];
		*p++ = hex[mac[i] & 15];
		*p++ = ':';
	}
	p[-1] = '"';
	separate(json);
	put(json, text, (size_t)(p - text));
}

void json_ip(struct json *json, const uint8_t ip[16])
{
	char text[NETOBS_ADDR_STR_MAX + 2], *to = text;

	*to++ = '"';
	to = addr_put(to, ip);
	*to++ = '"';
	separate(json);
	put(json, text, (size_t)(to - text));
}
