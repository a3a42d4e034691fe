/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "translation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Each set takes 2 MiB. A million faces set 6 % of its bits. */
enum { BITS = 1 << 24, WORD_BITS = 64, WORDS = BITS / WORD_BITS };

/* The table of translations uses the lower bits of a hash. */
static uint32_t bit_of(uint64_t hash)
{
	return (uint32_t)(hash >> 32) & (BITS - 1);
}

int lost_faces_init(struct lost_faces *lost)
{
	*lost = (struct lost_faces){ .current = 0 };
	for (int i = 0; i < LOST_GENERATIONS; i++)
		lost->sets[i] = calloc(WORDS, sizeof(uint64_t));
	if (lost->sets[0] && lost->sets[1])
		return 0;
	lost_faces_done(lost);
	return -ENOMEM;
}

void lost_faces_done(struct lost_faces *lost)
{
	for (int i = 0; i < LOST_GENERATIONS; i++)
		free(lost->sets[i]);
	*lost = (struct lost_faces){ .current = 0 };
}

void lost_faces_begin(struct lost_faces *lost)
{
	lost->current = !lost->current;
	if (lost->is_used[lost->current])
		memset(lost->sets[lost->current], 0, BITS / 8);
	lost->is_used[lost->current] = false;
}

void lost_faces_add(struct lost_faces *lost, uint64_t hash)
{
	const uint32_t bit = bit_of(hash);

	lost->sets[lost->current][bit / WORD_BITS] |= 1ULL << bit % WORD_BITS;
	lost->is_used[lost->current] = true;
}

bool lost_faces_has(const struct lost_faces *lost, uint64_t hash)
{
	const uint32_t bit = bit_of(hash);

	for (int i = 0; i < LOST_GENERATIONS; i++)
		if (lost->is_used[i] &&
		    lost->sets[i][bit / WORD_BITS] >> bit % WORD_BITS & 1)
			return true;
	return false;
}
