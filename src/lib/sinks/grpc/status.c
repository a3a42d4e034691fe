// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "status.h"

#include "base/util.h"

#include <ctype.h>
#include <string.h>

/* https://grpc.github.io/grpc/core/md_doc_statuscodes.html */
static const char *const names[] = {
	"OK",
	"CANCELLED",
	"UNKNOWN",
	"INVALID_ARGUMENT",
	"DEADLINE_EXCEEDED",
	"NOT_FOUND",
	"ALREADY_EXISTS",
	"PERMISSION_DENIED",
	"RESOURCE_EXHAUSTED",
	"FAILED_PRECONDITION",
	"ABORTED",
	"OUT_OF_RANGE",
	"UNIMPLEMENTED",
	"INTERNAL",
	"UNAVAILABLE",
	"DATA_LOSS",
	"UNAUTHENTICATED",
};

const char *status_name(int status)
{
	if (status < 0 || (size_t)status >= ARRAY_SIZE(names))
		return "an unknown status";
	return names[status];
}

/* As the servers of C++ and Python, Go, Java, Rust and .NET put it. */
static int says_too_big(const char *message)
{
	return strcasestr(message, "larger than") ||
	       strcasestr(message, "too large") ||
	       strcasestr(message, "exceeds");
}

enum status_action status_action(int status, const char *message)
{
	switch (status) {
	case STATUS_OK:
		return STATUS_ACCEPTED;
	case STATUS_RESOURCE_EXHAUSTED:
		return says_too_big(message) ? STATUS_TOO_BIG : STATUS_LATER;
	case STATUS_OUT_OF_RANGE:
		return says_too_big(message) ? STATUS_TOO_BIG : STATUS_REFUSED;
	case STATUS_INVALID_ARGUMENT:
		return STATUS_REFUSED;
	/* What servers answer whose own code throws, also while they decode. */
	case STATUS_UNKNOWN:
	case STATUS_INTERNAL:
	case STATUS_DATA_LOSS:
		return STATUS_SUSPECT;
	default:
		return STATUS_LATER;
	}
}

int status_parse(const char *text, size_t len)
{
	int status = 0;

	if (!len || len > 3)
		return STATUS_UNKNOWN;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return STATUS_UNKNOWN;
		status = status * 10 + text[i] - '0';
	}
	return status;
}

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef", *at;

	at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
	return at ? (int)(at - digits) : -1;
}

void status_decode(const char *text, size_t len, char *to, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < len && used + 1 < size; i++) {
		int high = -1, low = -1;
		char c = text[i];

		if (c == '%' && i + 2 < len) {
			high = hex_digit(text[i + 1]);
			low = hex_digit(text[i + 2]);
		}
		if (high >= 0 && low >= 0) {
			c = (char)(high << 4 | low);
			i += 2;
		}
		to[used++] = c >= ' ' && c <= '~' ? c : '?';
	}
	to[used] = '\0';
}
