/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Text: numbers and addresses, UTF-8, and what people and terminals get to see. */
#ifndef NETOBS_BASE_TEXT_H
#define NETOBS_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Numbers and addresses as text. Each function writes to @to, without a NUL, and returns
 * the end of the text. It may write TEXT_SPARE bytes more: stores of constant size are
 * what makes it fast.
 */

enum {
	TEXT_SPARE = 8,
	TEXT_U64_MAX = 20,
	TEXT_MAC_MAX = 17,
	TEXT_HASH_MAX = 16,
};

/* For values from 10 on. */
char *text_large(char *to, uint64_t value);

static inline char *text_u64(char *to, uint64_t value)
{
	if (value >= 10)
		return text_large(to, value);
	*to = (char)('0' + value);
	return to + 1;
}

/* "00c0ffee00000001" */
char *text_hash(char *to, uint64_t hash);

/* "02:00:00:00:00:01" */
char *text_mac(char *to, const uint8_t mac[6]);

/* @ip, in which IPv4 is ::ffff:a.b.c.d; less than NETOBS_ADDR_STR_MAX bytes. */
char *text_ip(char *to, const uint8_t ip[16]);

/** Read an address. @return false: @text is none, and @ret_ip has no meaning */
bool ip_read(const char *text, uint8_t ret_ip[16]);

/* @return the value of a hexadecimal digit; -1: it is none */
static inline int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 'a' - 'A';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static inline bool ip_is_v4(const uint8_t ip[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(ip, prefix, sizeof(prefix));
}

/* @return whether it is "::" */
static inline bool ip_is_any(const uint8_t ip[16])
{
	static const uint8_t any[16];

	return !memcmp(ip, any, sizeof(any));
}

/* @return whether it is "0.0.0.0" or "::" */
static inline bool ip_is_unspecified(const uint8_t ip[16])
{
	return (ip_is_v4(ip) && !ip[12] && !ip[13] && !ip[14] && !ip[15]) ||
	       ip_is_any(ip);
}

/* Add to the text in @buf what fits. */
void text_append(char *buf, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Text that readers want as UTF-8: names of interfaces are any bytes. */

#define UTF8_REPLACEMENT \
	"\xef\xbf\xbd" /* U+FFFD, for a byte that is no part of UTF-8 */

/*
 * Length of the UTF-8 sequence at @s, 0 when there is none: RFC 3629, section
 * 4. A NUL fails as a continuation byte, so this stays inside the string.
 */
static inline size_t utf8_length(const uint8_t *s)
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

/* The control character at @s, of C0, DEL or C1, which UTF-8 has as two bytes; 0: there is none. */
static inline uint8_t utf8_control(const uint8_t *s)
{
	if (s[0] < 0x20 || s[0] == 0x7f)
		return s[0];
	return s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0 ? s[1] : 0;
}

/*
 * @text itself if it is UTF-8, else @buf with a copy that has U+FFFD in place of each
 * byte that is not. @buf has room for three times the length of @text, and a NUL.
 */
static inline const char *utf8_repair(const char *text, char *buf)
{
	const uint8_t *s = (const uint8_t *)text;
	char *to = buf;
	size_t len;

	while (*s && (len = utf8_length(s)))
		s += len;
	if (!*s)
		return text;
	for (s = (const uint8_t *)text; *s; s += len ?: 1) {
		len = utf8_length(s);
		memcpy(to, len ? (const char *)s : UTF8_REPLACEMENT, len ?: 3);
		to += len ?: 3;
	}
	*to = '\0';
	return buf;
}

/*
 * Names of processes, interfaces and others may be any bytes. Each place that
 * they go to has one function that makes them safe for it:
 *
 * a cell on a terminal       safe_cell()
 * a line of a log            safe_line()
 * JSON                       json_string(), which escapes control characters
 * a label for Prometheus     safe_label()
 * IPFIX, of a fixed length   safe_utf8_cut()
 * protobuf, pcapng           utf8_repair()
 */

/* Replace all but printable ASCII, so that a byte of @text is a column, and steers no terminal. */
void safe_cell(char *text);

/*
 * Replace control characters, also those from U+0080 to U+009F, and bytes that are not UTF-8.
 * @text may become shorter.
 */
void safe_line(char *text);

/*
 * @text as a label's value: escaped as Prometheus requires, and a control character as "\x1b",
 * as text of four characters, so that names which differ only there remain different.
 *
 * @param to    has room for SAFE_LABEL_ROOM(@most) bytes
 * @param most  bytes of @text; of a longer one, the beginning and "..."
 * @return bytes in @to, without a NUL
 */
#define SAFE_LABEL_ROOM(most) (5 * ((most) + 4) + 3)
size_t safe_label(char *to, const char *text, size_t most);

/*
 * Write at most @size bytes of UTF-8, without a NUL, and never a part of a character. Each byte of
 * @text that is not UTF-8 becomes "?", which takes no more room than the byte.
 *
 * @param len  of @text, unless a NUL ends it before
 */
void safe_utf8_cut(char *to, size_t size, const char *text, size_t len);

/* Names of protocols and endpoints in the form that people read. */

/* "TCP", "proto-123" */
void human_protocol(char *buf, size_t size, uint8_t proto);

/* @return "vxlan", of enum netobs_tunnel; NULL: no such number */
const char *tunnel_name(uint8_t type);

/* "vxlan", or "tunnel" */
const char *human_tunnel_name(uint8_t type);

/* "10.0.0.1:80", "[fe80::1]:53" */
void human_endpoint(char *buf, size_t size, const char *host, const char *port);

#endif
