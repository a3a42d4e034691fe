/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "json.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
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

/*
 * Length of the UTF-8 sequence at @s, 0 when there is none: RFC 3629, section
 * 4. A NUL fails as a continuation byte, so this stays inside the string.
 */
static size_t utf8_length(const uint8_t *s)
{
	uint8_t low = 0x80, high = 0xbf;
	size_t len;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	/* Overlong forms, surrogates, and what lies beyond U+10FFFF. */
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;

	for (size_t i = 2; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	return len;
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
			put(json, "\xef\xbf\xbd", 3);
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

static void put_ipv4(struct json *json, const uint8_t ip[4])
{
	char text[15], *p = text + sizeof(text);

	for (int i = 3; i >= 0; i--) {
		p = digits(ip[i], p);
		if (i)
			*--p = '.';
	}
	put(json, p, (size_t)(text + sizeof(text) - p));
}

/* Where the longest run of groups that are 0 is, if it has two or more. */
static void find_zeros(const uint16_t groups[8], int *ret_start, int *ret_end)
{
	*ret_start = *ret_end = -1;
	for (int i = 0; i < 8; i++) {
		int start = i;

		while (i < 8 && !groups[i])
			i++;
		if (i - start >= 2 && i - start > *ret_end - *ret_start) {
			*ret_start = start;
			*ret_end = i;
		}
	}
}

static char *put_group(char *to, uint16_t group)
{
	int shift = group > 0xfff ? 12 : group > 0xff ? 8 : group > 0xf ? 4 : 0;

	for (; shift >= 0; shift -= 4)
		*to++ = hex[group >> shift & 15];
	return to;
}

/* RFC 5952, section 4. */
static void put_ipv6(struct json *json, const uint8_t ip[16])
{
	char text[INET6_ADDRSTRLEN], *to = text;
	uint16_t groups[8];
	int start, end;

	for (int i = 0; i < 8; i++)
		groups[i] = (uint16_t)(ip[2 * i] << 8 | ip[2 * i + 1]);
	find_zeros(groups, &start, &end);
	for (int i = 0; i < 8; i++) {
		if (i == start) {
			*to++ = ':';
			*to++ = ':';
			i = end;
			if (i == 8)
				break;
		} else if (i) {
			*to++ = ':';
		}
		to = put_group(to, groups[i]);
	}
	put(json, text, (size_t)(to - text));
}

void json_ip(struct json *json, const uint8_t ip[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	separate(json);
	put_byte(json, '"');
	if (!memcmp(ip, mapped, sizeof(mapped)))
		put_ipv4(json, ip + sizeof(mapped));
	else
		put_ipv6(json, ip);
	put_byte(json, '"');
}
