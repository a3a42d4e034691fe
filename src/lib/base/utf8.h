/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Text that readers want as UTF-8: names of interfaces are any bytes. */
#ifndef NETOBS_BASE_UTF8_H
#define NETOBS_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#endif
