/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Values of options, as users write them: of sinks and on the command line. */
#ifndef NETOBS_BASE_VALUE_H
#define NETOBS_BASE_VALUE_H

#include <stddef.h>
#include <stdint.h>

enum value_kind {
	VALUE_NUMBER,
	VALUE_BYTES, /* K, M or G behind it are multiples of 1024 */
	/*
	 * Seconds, or with ms, s, m, h or d behind it another unit; a decimal fraction
	 * is allowed. The value is in milliseconds, rounded up.
	 */
	VALUE_DURATION,
};

/* @return 0; -EINVAL: @text is no such value; -ERANGE: not from @least to @most */
int value_parse(enum value_kind kind, const char *text, uint64_t least,
		uint64_t most, uint64_t *ret_value);

/* Format @value in the largest unit that it is a multiple of. */
void value_format(enum value_kind kind, uint64_t value, char *text, size_t size);

/* The index of @text in @choices, which ends with NULL; -EINVAL: it is none of them. */
int value_choice(const char *const *choices, const char *text);

#endif
