// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "grpc.h"

#include "base/text.h"
#include "base/util.h"
#include "sinks/pbflow/wire.h"

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

/* The messages of servers in C++ and Python, Go, Java, Rust and .NET. */
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

/* ---- Details ---------------------------------------------------------------------- */

enum {
	DETAILS_MAX = 4096, /* bytes; what is longer is not looked at */

	/* Numbers in google/rpc/status.proto and error_details.proto. */
	STATUS_DETAILS = 3,
	ANY_TYPE_URL = 1,
	ANY_VALUE = 2,
	RETRY_INFO_DELAY = 1,
	DURATION_SECONDS = 1,
	DURATION_NANOS = 2,
};

/* RFC 4648, with or without padding. @return bytes; 0: it is something else */
static size_t decode_base64(const char *text, size_t len, uint8_t *to)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0, n_bits = 0;
	size_t n = 0;

	while (len && text[len - 1] == '=')
		len--;
	for (size_t i = 0; i < len; i++) {
		const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

		if (!digit)
			return 0;
		bits = bits << 6 | (uint32_t)(digit - digits);
		n_bits += 6;
		if (n_bits < 8)
			continue;
		n_bits -= 8;
		to[n++] = (uint8_t)(bits >> n_bits);
	}
	return n;
}

static int64_t read_duration(const struct wire_field *duration)
{
	struct wire_reader reader = wire_read(duration->bytes, duration->len);
	uint64_t seconds = 0, nanos = 0;
	struct wire_field field;

	while (wire_next(&reader, &field)) {
		if (field.number == DURATION_SECONDS)
			seconds = field.value;
		else if (field.number == DURATION_NANOS)
			nanos = field.value;
	}
	if (reader.is_wrong || seconds > INT64_MAX)
		return 0;
	if (seconds >= STATUS_RETRY_MAX_S)
		return 1000 * STATUS_RETRY_MAX_S;
	return (int64_t)(1000 * seconds +
			 min_u64(nanos, NSEC_PER_SEC - 1) / NSEC_PER_MSEC);
}

static int64_t read_retry_info(const struct wire_field *info)
{
	struct wire_reader reader = wire_read(info->bytes, info->len);
	struct wire_field field;

	while (wire_next(&reader, &field))
		if (field.number == RETRY_INFO_DELAY && field.wire == WIRE_BYTES)
			return read_duration(&field);
	return 0;
}

static int64_t read_detail(const struct wire_field *any)
{
	static const char name[] = "/google.rpc.RetryInfo";
	struct wire_reader reader = wire_read(any->bytes, any->len);
	struct wire_field field, value = { 0 };
	bool is_retry_info = false;

	while (wire_next(&reader, &field)) {
		if (field.wire != WIRE_BYTES)
			continue;
		if (field.number == ANY_TYPE_URL)
			is_retry_info = memmem(field.bytes, field.len, name,
					       strlen(name));
		else if (field.number == ANY_VALUE)
			value = field;
	}
	return is_retry_info && value.bytes ? read_retry_info(&value) : 0;
}

int64_t status_retry_ms(const char *text, size_t len)
{
	uint8_t bytes[DETAILS_MAX];
	struct wire_reader reader;
	struct wire_field field;
	int64_t ms = 0;

	if (len > DETAILS_MAX)
		return 0;
	reader = wire_read(bytes, decode_base64(text, len, bytes));
	while (!ms && wire_next(&reader, &field))
		if (field.number == STATUS_DETAILS && field.wire == WIRE_BYTES)
			ms = read_detail(&field);
	return ms;
}
