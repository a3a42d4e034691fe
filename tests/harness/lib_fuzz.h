/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What fuzzers have in common. They are linked with a few sources each, and without the harness. */
#ifndef HARNESS_LIB_FUZZ_H
#define HARNESS_LIB_FUZZ_H

#include "base/util.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(condition)                  \
	do {                              \
		if (!(condition))         \
			__builtin_trap(); \
	} while (0)

/* The input as a string, for the caller to free. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	check(text);
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/* The next bytes of the input, or zeros where it ends. */
static inline void fuzz_take(const uint8_t **data, size_t *size, void *to,
			     size_t len)
{
	size_t n = min_u64(*size, len);

	memset(to, 0, len);
	memcpy(to, *data, n);
	*data += n;
	*size -= n;
}

#endif
