/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What is typed as an option's value, to numbers. -EINVAL: not one; -ERANGE. */
#ifndef NETOBS_CLI_VALUE_H
#define NETOBS_CLI_VALUE_H

#include <stdint.h>

/* A whole number from 1 to @max. */
int value_number(const char *text, uint64_t max, uint64_t *ret_value);

/* A number of bytes from 1 on, of KiB, MiB or GiB with a K, M or G behind it. */
int value_bytes(const char *text, uint64_t *ret_bytes);

/*
 * Seconds, or with ms, s, m, h or d behind it another unit, as in the options of
 * sinks; a decimal fraction is allowed. To milliseconds: 1 to INT32_MAX.
 */
int value_duration(const char *text, uint32_t *ret_ms);

/* Index of @text in @choices, which ends with NULL. */
int value_choice(const char *const *choices, const char *text, int *ret_index);

#endif
