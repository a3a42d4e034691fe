/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "repeats.h"

#include "util.h"

enum {
	SLOTS_PER_KEY = 16,
	SLOTS_MIN = 1 << 16,
	SLOTS_MAX = 1 << 26,
	SLOTS_PER_WORD = 32,
};

/* Two bits of a slot. Beside one another: a key costs one cache line. */
enum { ONCE = 1, AGAIN = 2 };

void repeats_init(struct repeats *repeats, uint64_t n)
{
	uint64_t slots = SLOTS_MIN;

	while (slots < SLOTS_MAX && slots < n * SLOTS_PER_KEY)
		slots *= 2;
	*repeats = (struct repeats){
		.words = calloc(slots / SLOTS_PER_WORD, sizeof(*repeats->words)),
		.mask = slots - 1,
	};
}

void repeats_done(struct repeats *repeats)
{
	free(repeats->words);
	*repeats = (struct repeats){ 0 };
}

void repeats_note(struct repeats *repeats, uint64_t hash)
{
	uint64_t slot = hash & repeats->mask, *word;
	unsigned int shift = slot % SLOTS_PER_WORD * 2;

	if (!repeats->words)
		return;
	word = &repeats->words[slot / SLOTS_PER_WORD];
	*word |= (*word >> shift & ONCE ? (uint64_t)AGAIN : ONCE) << shift;
}

bool repeats_may(const struct repeats *repeats, uint64_t hash)
{
	uint64_t slot = hash & repeats->mask;
	unsigned int shift = slot % SLOTS_PER_WORD * 2;

	return !repeats->words ||
	       repeats->words[slot / SLOTS_PER_WORD] >> shift & AGAIN;
}
