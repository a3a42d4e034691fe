/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "merge.h"

#include "base/pages.h"

enum {
	SLOTS_PER_KEY = 16,
	SLOTS_MIN = 1 << 16,
	SLOTS_MAX = 1 << 26,
	SLOTS_PER_WORD = 32,
	SLOTS_PER_LINE = 256, /* of the cache: a key costs one of them */
};

/* Two bits of a slot. */
enum { ONCE = 1, AGAIN = 2 };

/* The slots of a key: a Bloom filter's, but all in one line. */
struct slots {
	uint64_t *words[2];
	unsigned int shifts[2];
};

void repeats_init(struct repeats *repeats, uint64_t n)
{
	uint64_t slots = SLOTS_MIN;

	while (slots < SLOTS_MAX && slots < n * SLOTS_PER_KEY)
		slots *= 2;
	*repeats = (struct repeats){
		.words = pages_map(slots / SLOTS_PER_WORD *
				   sizeof(*repeats->words)),
		.mask = slots - 1,
	};
}

void repeats_done(struct repeats *repeats)
{
	uint64_t slots = repeats->mask + 1;

	pages_unmap(repeats->words,
		    slots / SLOTS_PER_WORD * sizeof(*repeats->words));
	*repeats = (struct repeats){ 0 };
}

static uint64_t line_of(const struct repeats *repeats, uint64_t hash)
{
	return hash & repeats->mask & ~(uint64_t)(SLOTS_PER_LINE - 1);
}

static struct slots find_slots(const struct repeats *repeats, uint64_t hash)
{
	uint64_t line = line_of(repeats, hash);
	struct slots slots;

	for (int i = 0; i < 2; i++) {
		uint64_t slot = line + (hash >> (48 + 8 * i)) % SLOTS_PER_LINE;

		slots.words[i] = &repeats->words[slot / SLOTS_PER_WORD];
		slots.shifts[i] = slot % SLOTS_PER_WORD * 2;
	}
	return slots;
}

static bool have_all(const struct slots *slots, uint64_t bit)
{
	return *slots->words[0] >> slots->shifts[0] &
	       *slots->words[1] >> slots->shifts[1] & bit;
}

void repeats_prefetch(const struct repeats *repeats, uint64_t hash)
{
	if (repeats->words)
		__builtin_prefetch(
			&repeats->words[line_of(repeats, hash) / SLOTS_PER_WORD],
			1);
}

void repeats_note(struct repeats *repeats, uint64_t hash)
{
	struct slots slots;
	uint64_t bit;

	if (!repeats->words)
		return;
	slots = find_slots(repeats, hash);
	bit = have_all(&slots, ONCE) ? AGAIN : ONCE;
	for (int i = 0; i < 2; i++)
		*slots.words[i] |= bit << slots.shifts[i];
}

bool repeats_may(const struct repeats *repeats, uint64_t hash)
{
	struct slots slots;

	if (!repeats->words)
		return true;
	slots = find_slots(repeats, hash);
	return have_all(&slots, AGAIN);
}
