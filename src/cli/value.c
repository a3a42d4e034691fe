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

/* Milliseconds of the unit that @text is; 0: it is none. */
static uint64_t unit_ms(const char *text)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = {
		{ "", 1000 },	    { "s", 1000 },	  { "ms", 1 },
		{ "m", 60 * 1000 }, { "h", 3600 * 1000 }, { "d", 86400 * 1000 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(text, units[i].name))
			return units[i].ms;
	return 0;
}

/* Millionths of the fraction that @text begins with, rounded up. */
static uint64_t read_fraction(const char *text, size_t len)
{
	uint64_t value = 0, unit = 1000000;
	bool rest = false;

	for (size_t i = 0; i < len; i++) {
		unit /= 10;
		value += (uint64_t)(text[i] - '0') * unit;
		rest |= !unit && text[i] != '0';
	}
	return value + rest;
}

/* "5", "0.02", ".5", "1.5h"; what is less than a millisecond is rounded up. */
int value_duration(const char *text, uint32_t *ret_ms)
{
	static const char digits[] = "0123456789";
	size_t whole_len = strspn(text, digits), fraction_len = 0;
	const char *rest = text + whole_len;
	uint64_t whole = 0, millionths = 0, unit, ms;

	if (*rest == '.') {
		fraction_len = strspn(rest + 1, digits);
		millionths = read_fraction(rest + 1, fraction_len);
		rest += 1 + fraction_len;
	}
	unit = unit_ms(rest);
	if (!unit || whole_len + fraction_len == 0)
		return -EINVAL;
	for (size_t i = 0; i < whole_len; i++) {
		whole = whole * 10 + (uint64_t)(text[i] - '0');
		if (whole > INT32_MAX)
			return -ERANGE;
	}
	ms = whole * unit + (millionths * unit + 999999) / 1000000;
	if (!ms || ms > INT32_MAX)
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
