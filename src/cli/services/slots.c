/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { FIRST_SIZE = 64 };

uint64_t slots_hash(struct slots *slots, const void *key, size_t len)
{
	if (!slots->has_secret)
		secret_fill(slots->secret, sizeof(slots->secret));
	slots->has_secret = true;
	return hash_bytes(key, len, slots->secret);
}

static void put(struct slots *slots, struct slot slot)
{
	uint32_t i = slot.hash & (slots->size - 1);

	while (slots->slots[i].next)
		i = (i + 1) & (slots->size - 1);
	slots->slots[i] = slot;
}

static bool grow(struct slots *slots)
{
	struct slots more = *slots;

	more.size = slots->size ? 2 * slots->size : FIRST_SIZE;
	more.slots = calloc(more.size, sizeof(*more.slots));
	if (!more.slots)
		return false;
	for (uint32_t i = 0; i < slots->size; i++)
		if (slots->slots[i].next)
			put(&more, slots->slots[i]);
	free(slots->slots);
	*slots = more;
	return true;
}

uint32_t slots_find(const struct slots *slots, uint64_t hash,
		    slot_same_fn *is_same, const void *array, const void *key)
{
	uint32_t i = (uint32_t)hash & (slots->size - 1);

	if (!slots->size)
		return SLOT_NONE;
	for (; slots->slots[i].next; i = (i + 1) & (slots->size - 1)) {
		const uint32_t index = slots->slots[i].next - 1;

		if (slots->slots[i].hash == (uint32_t)hash &&
		    is_same(array, index, key))
			return index;
	}
	return SLOT_NONE;
}

/* At least a quarter of the slots is empty, so that searches end soon. */
bool slots_add(struct slots *slots, uint64_t hash, uint32_t index)
{
	if (slots->n >= SLOTS_MAX)
		return false;
	if (slots->n >= slots->size / 4 * 3 && !grow(slots))
		return false;
	put(slots, (struct slot){ .hash = (uint32_t)hash, .next = index + 1 });
	slots->n++;
	return true;
}

void slots_clear(struct slots *slots)
{
	if (slots->size)
		memset(slots->slots, 0, slots->size * sizeof(*slots->slots));
	slots->n = 0;
}

void slots_free(struct slots *slots)
{
	free(slots->slots);
	slots->slots = NULL;
	slots->size = slots->n = 0;
}
