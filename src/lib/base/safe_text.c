// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "text.h"

void safe_cell(char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
}

void safe_line(char *text)
{
	const uint8_t *s = (const uint8_t *)text;
	char *to = text;
	size_t len;

	for (; *s; s += len ?: 1) {
		len = utf8_length(s);
		if (!len || utf8_control(s)) {
			*to++ = '?';
		} else {
			memmove(to, s, len);
			to += len;
		}
	}
	*to = '\0';
}

static char *put_control(char *to, uint8_t control)
{
	static const char hex[] = "0123456789abcdef";

	memcpy(to, "\\\\x", 3); /* "\\" is a backslash */
	to[3] = hex[control >> 4];
	to[4] = hex[control & 15];
	return to + 5;
}

size_t safe_label(char *to, const char *text, size_t most)
{
	const uint8_t *s = (const uint8_t *)text;
	const char *begin = to;
	uint8_t control;
	size_t len;

	for (; *s && (size_t)(s - (const uint8_t *)text) < most; s += len ?: 1) {
		len = utf8_length(s);
		control = utf8_control(s);
		if (!len) {
			memcpy(to, UTF8_REPLACEMENT, 3);
			to += 3;
		} else if (*s == '\n') {
			*to++ = '\\';
			*to++ = 'n';
		} else if (control) {
			to = put_control(to, control);
		} else {
			if (*s == '"' || *s == '\\')
				*to++ = '\\';
			memcpy(to, s, len);
			to += len;
		}
	}
	if (*s) {
		memcpy(to, "...", 3);
		to += 3;
	}
	return (size_t)(to - begin);
}

void safe_utf8_cut(char *to, size_t size, const char *text, size_t len)
{
	uint8_t next[4] = { 0 };
	size_t n;

	for (; len && *text; text += n, len -= n) {
		/* What is behind @text is not read, and a NUL ends a character. */
		memset(next, 0, sizeof(next));
		memcpy(next, text, len < sizeof(next) ? len : sizeof(next));
		n = utf8_length(next);
		if (!n)
			next[0] = '?';
		n = n ?: 1;
		if (n > size)
			return;
		memcpy(to, next, n);
		to += n;
		size -= n;
	}
}
