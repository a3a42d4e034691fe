/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "series_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 4 };

static size_t candidate_size(const struct candidates *candidates)
{
	return sizeof(struct candidate) + candidates->value_size;
}

struct candidate *candidates_at(const struct candidates *candidates, size_t i)
{
	return (struct candidate *)(candidates->all +
				    i * candidate_size(candidates));
}

int candidates_init(struct candidates *candidates, size_t key_size,
		    size_t value_size, size_t at_least)
{
	*candidates = (struct candidates){ .key_size = key_size,
					   .value_size = value_size,
					   .n = WAYS };
	while (candidates->n < at_least)
		candidates->n *= 2;
	candidates->all = calloc(candidates->n, candidate_size(candidates));
	return candidates->all ? 0 : -ENOMEM;
}

/* Misra-Gries: a new group decrements the smallest counter of its bucket, and replaces it at zero. */
void candidates_add(struct candidates *candidates, uint64_t hash,
		    const uint8_t *value, uint64_t bytes)
{
	const size_t first = hash & (candidates->n - 1) & ~(size_t)(WAYS - 1);
	struct candidate *least = NULL;

	for (size_t i = first; i < first + WAYS; i++) {
		struct candidate *candidate = candidates_at(candidates, i);

		if (candidate->bytes && candidate->hash == hash &&
		    !memcmp(candidate->value, value, candidates->key_size)) {
			candidate->bytes += bytes;
			return;
		}
		if (!least || candidate->bytes < least->bytes)
			least = candidate;
	}
	if (least->bytes >= bytes) {
		least->bytes -= bytes;
		return;
	}
	least->hash = hash;
	least->bytes = bytes - least->bytes;
	memcpy(least->value, value, candidates->value_size);
}

void candidates_decay(struct candidates *candidates, uint64_t part)
{
	for (size_t i = 0; i < candidates->n; i++) {
		uint64_t *bytes = &candidates_at(candidates, i)->bytes;

		*bytes -= *bytes / part + !!(*bytes % part);
	}
}

void candidates_free(struct candidates *candidates)
{
	free(candidates->all);
	candidates->all = NULL;
}
