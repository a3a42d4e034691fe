// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Answers of any server to OTLP, and the details of a status of gRPC. */
#include "lib_fuzz.h"
#include "sinks/grpc/grpc.h"
#include "sinks/otlp/otlp.h"

static size_t encode_base64(const uint8_t *data, size_t size, char *to)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0, n_bits = 0;
	size_t n = 0;

	for (size_t i = 0; i < size; i++) {
		bits = bits << 8 | data[i];
		for (n_bits += 8; n_bits >= 6; n_bits -= 6)
			to[n++] = digits[bits >> (n_bits - 6) & 63];
	}
	if (n_bits)
		to[n++] = digits[bits << (6 - n_bits) & 63];
	return n;
}

static void check_ms(int64_t ms)
{
	check(ms >= 0 && ms <= 1000 * STATUS_RETRY_MAX_S);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct otlp_answer answer;
	char text[8192];

	if (size > 4096)
		return 0;
	otlp_read_answer(data, size, &answer);
	check(answer.rejected <= INT64_MAX &&
	      strlen(answer.message) < sizeof(answer.message));
	check_ms(status_retry_ms((const char *)data, size));
	check_ms(status_retry_ms(text, encode_base64(data, size, text)));
	return 0;
}
