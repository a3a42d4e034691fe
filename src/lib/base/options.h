/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Options: their values as users write them, and structs of options that may grow. */
#ifndef NETOBS_BASE_OPTIONS_H
#define NETOBS_BASE_OPTIONS_H

#include "log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values of options, as users write them: of sinks and on the command line. */

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

/* "Did you mean": finds a word of a list that differs from the typed one by a letter, or by two swapped letters. */

struct suggestion {
	const char *typed;
	size_t len; /* bytes that count */
	const char *best;
};

/* Only @len characters of @typed count. */
struct suggestion suggestion_for(const char *typed, size_t len);

/* Consider @word, which outlives the suggestion. */
void suggestion_offer(struct suggestion *suggestion, const char *word);

/* @return the last one that is so close; NULL: none is */
const char *suggestion_best(const struct suggestion *suggestion);

/*
 * Structs of callers that begin with their size, so that they can grow. A caller
 * may have been compiled for an older or a newer library than this one.
 */

/*
 * Options: 0, or -EINVAL, which is logged, if the size at the start of @opts cannot
 * be, or bytes beyond @known, the size of this library's struct, are set.
 */
int sized_check(const void *opts, size_t known, const struct log *log);

/* A requirement that an option may fail. */
struct option_check {
	const char *name, *why;
	bool is_wrong;
};

/* @return 0; -EINVAL: one of the @n is wrong, the first of which is logged */
int option_check(const struct option_check *checks, size_t n,
		 const struct log *log);

/* For results: copy the part of @from that the caller knows, and set its size. */
int sized_fill(void *to, const void *from, size_t known);

#endif
