/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "value.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* Digits only: strtoull() would take signs, blanks and other bases. */
static int read_number(const char *text, size_t len, uint64_t max,
		       uint64_t *ret_value)
{
	const char *end = text + len;
	uint64_t value = 0;

	if (!len)
		return -EINVAL;
	for (; text < end; text++) {
		unsigned int digit = (unsigned int)(*text - '0');

		if (digit > 9)
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, digit, &value) || value > max)
			return -ERANGE;
	}
	if (value == 0)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int value_number(const char *text, uint64_t max, uint64_t *ret_value)
{
	return read_number(text, strlen(text), max, ret_value);
}

int value_bytes(const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "KMG";
	size_t len = strlen(text);
	const char *unit = len ? strchr(units, text[len - 1]) : NULL;
	unsigned int shift = unit ? 10 * (unsigned int)(unit - units + 1) : 0;
	uint64_t value;
	int err = read_number(text, len - (unit ? 1 : 0), UINT64_MAX >> shift,
			      &value);

	if (!err)
		*ret_bytes = value << shift;
	return err;
}

/* "5", "0.02", ".5", to milliseconds; more decimals than three are rounded up. */
int value_seconds(const char *text, uint32_t *ret_ms)
{
	uint64_t ms = 0, unit = 1000;
	bool digits = false, rest = false, point = false;

	for (; *text; text++) {
		unsigned int digit = (unsigned int)(*text - '0');

		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (digit > 9)
			return -EINVAL;
		digits = true;
		if (!point) {
			ms = ms * 10 + digit * 1000;
		} else {
			unit /= 10;
			ms += digit * unit;
			rest |= unit == 0 && digit;
		}
		if (ms > INT32_MAX)
			return -ERANGE;
	}
	ms += rest;
	if (!digits)
		return -EINVAL;
	if (ms == 0)
		return -ERANGE;
	*ret_ms = (uint32_t)ms;
	return 0;
}

int value_choice(const char *const *choices, const char *text, int *ret_index)
{
	for (int i = 0; choices[i]; i++) {
		if (!strcmp(choices[i], text)) {
			*ret_index = i;
			return 0;
		}
	}
	return -EINVAL;
}
