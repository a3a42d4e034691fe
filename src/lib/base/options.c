// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "options.h"

#include "util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- Values ------------------------------------------------------------------------- */

enum { UNITS_MAX = 7, MILLION = 1000000 };

static const struct unit {
	const char *name;
	uint64_t factor;
} units[][UNITS_MAX] = {
	[VALUE_NUMBER] = { { "", 1 } },
	[VALUE_BYTES] = {
		{ "", 1 },
		{ "K", 1ULL << 10 },
		{ "M", 1ULL << 20 },
		{ "G", 1ULL << 30 },
	},
	[VALUE_DURATION] = {
		{ "", 1000 },
		{ "ms", 1 },
		{ "s", 1000 },
		{ "m", 60 * 1000 },
		{ "h", 60 * 60 * 1000 },
		{ "d", 24 * 60 * 60 * 1000 },
	},
};

static const char digits[] = "0123456789";

/* 0: @text is none. */
static uint64_t unit_factor(enum value_kind kind, const char *text)
{
	for (const struct unit *unit = units[kind]; unit->name; unit++)
		if (!strcmp(text, unit->name))
			return unit->factor;
	return 0;
}

/* Millionths of the fraction that @text begins with, rounded up. */
static uint64_t read_fraction(const char *text, size_t len)
{
	uint64_t value = 0, unit = MILLION;
	bool rest = false;

	for (size_t i = 0; i < len; i++) {
		unit /= 10;
		value += (uint64_t)(text[i] - '0') * unit;
		rest |= !unit && text[i] != '0';
	}
	return value + rest;
}

/* Digits only: strtoull() would take signs, blanks and other bases. */
static bool read_whole(const char *text, size_t len, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len; i++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'),
					   &value))
			return false;
	*ret_value = value;
	return true;
}

/* "5", "0.02", ".5", "1.5h". */
int value_parse(enum value_kind kind, const char *text, uint64_t least,
		uint64_t most, uint64_t *ret_value)
{
	size_t whole_len = strspn(text, digits), fraction_len = 0;
	const char *rest = text + whole_len;
	uint64_t value, millionths = 0, factor;

	if (kind == VALUE_DURATION && *rest == '.') {
		fraction_len = strspn(rest + 1, digits);
		millionths = read_fraction(rest + 1, fraction_len);
		rest += 1 + fraction_len;
	}
	factor = unit_factor(kind, rest);
	if (!factor || whole_len + fraction_len == 0)
		return -EINVAL;
	if (!read_whole(text, whole_len, &value) ||
	    __builtin_mul_overflow(value, factor, &value) ||
	    __builtin_add_overflow(value,
				   (millionths * factor + MILLION - 1) / MILLION,
				   &value) ||
	    value < least || value > most)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

void value_format(enum value_kind kind, uint64_t value, char *text, size_t size)
{
	const struct unit *best = units[kind];

	for (const struct unit *unit = best; value && unit->name; unit++)
		if (value % unit->factor == 0 &&
		    (value % best->factor || unit->factor >= best->factor))
			best = unit;
	snprintf(text, size, "%llu%s",
		 (unsigned long long)(value / best->factor), best->name);
}

int value_choice(const char *const *choices, const char *text)
{
	for (int i = 0; choices[i]; i++)
		if (!strcmp(choices[i], text))
			return i;
	return -EINVAL;
}

/* ---- Suggestions -------------------------------------------------------------------- */

struct suggestion suggestion_for(const char *typed, size_t len)
{
	return (struct suggestion){ typed, len, NULL };
}

/* Between equal beginnings and ends, the words differ in one letter, or in two that are swapped. */
void suggestion_offer(struct suggestion *suggestion, const char *word)
{
	const char *a = suggestion->typed, *b = word;
	size_t a_len = suggestion->len, b_len = strlen(word);

	for (; a_len && b_len && *a == *b; a++, b++, a_len--)
		b_len--;
	for (; a_len && b_len && a[a_len - 1] == b[b_len - 1]; a_len--)
		b_len--;
	if ((a_len < 2 && b_len < 2) ||
	    (a_len == 2 && b_len == 2 && a[0] == b[1] && a[1] == b[0]))
		suggestion->best = word;
}

const char *suggestion_best(const struct suggestion *suggestion)
{
	return suggestion->best;
}

/* ---- Structs of callers ------------------------------------------------------------- */

int sized_check(const void *opts, size_t known, const struct log *log)
{
	const char *bytes = opts;
	const size_t sz = *(const size_t *)opts;

	if (sz < sizeof(sz)) {
		log_error(log, "sz: %zu is not the size of the options", sz);
		return -EINVAL;
	}
	for (size_t i = known; i < sz; i++) {
		if (!bytes[i])
			continue;
		log_error(log,
			  "sz: options are set that libnetobs %s does not know",
			  NETOBS_VERSION);
		return -EINVAL;
	}
	return 0;
}

int option_check(const struct option_check *checks, size_t n,
		 const struct log *log)
{
	for (size_t i = 0; i < n; i++) {
		if (!checks[i].is_wrong)
			continue;
		log_error(log, "%s: %s", checks[i].name, checks[i].why);
		return -EINVAL;
	}
	return 0;
}

int sized_fill(void *to, const void *from, size_t known)
{
	size_t sz = *(const size_t *)to;

	if (sz < sizeof(sz))
		return -EINVAL;
	sz = min_u64(sz, known);
	memcpy(to, from, sz);
	*(size_t *)to = sz;
	return 0;
}
