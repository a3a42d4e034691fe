/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* "Did you mean": the word of a list that is closest to what was typed. */
#ifndef NETOBS_BASE_SUGGEST_H
#define NETOBS_BASE_SUGGEST_H

#include <stddef.h>

struct suggestion {
	const char *typed;
	size_t len; /* bytes that count */
	const char *best;
	unsigned int distance; /* from it */
};

/* Only @len characters of @typed count. */
struct suggestion suggestion_for(const char *typed, size_t len);

/* Consider @word, which outlives the suggestion. */
void suggestion_offer(struct suggestion *suggestion, const char *word);

/* NULL: no word is close enough. */
const char *suggestion_best(const struct suggestion *suggestion);

#endif
