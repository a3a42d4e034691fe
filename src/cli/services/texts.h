/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Texts by numbers, so that thousands of conversations of one workload have its name once. */
#ifndef NETOBS_CLI_SERVICES_TEXTS_H
#define NETOBS_CLI_SERVICES_TEXTS_H

#include "slots.h"

enum { TEXTS_MAX = 65536 /* later ones have no number */ };

/* All zero: there are none. */
struct texts {
	char **list;
	uint32_t n, capacity;
	struct slots slots;
};

/** @return the hash of a text of any length */
uint64_t texts_hash(struct slots *slots, const char *text);

/** @return its number, from 1 on; 0: it is "", or there is no room */
uint32_t texts_number(struct texts *texts, const char *text);

/** @return the text of a number */
const char *texts_at(const struct texts *texts, uint32_t number);

void texts_free(struct texts *texts);

#endif
