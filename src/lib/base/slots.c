/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "slots.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "util.h"

enum { FIRST_SLOTS = 64, FIRST_ITEMS = FIRST_SLOTS / 4 * 3 };

static uint64_t hash_of(const struct slots *slots, const void *bytes, size_t len)
{
	const char *from = bytes;
	uint64_t hash = 0;

	for (size_t at = 0; at < len; at += SLOTS_BLOCK) {
		const size_t n = min_u64(SLOTS_BLOCK, len - at);
		const size_t padded = (n + 7) & ~(size_t)7;
		char block[SLOTS_BLOCK];

		memset(block + padded - 8, 0, 8);
		memcpy(block, from + at, n);
		hash = hash_finish(hash ^
				   hash_bytes(block, padded, slots->secret));
	}
	return hash;
}

static void *key_of(const struct slots *slots, uint32_t index)
{
	return (char *)slots_at(slots, index) + slots->key_at;
}

static void make_secret(struct slots *slots)
{
	if (!slots->has_secret)
		secret_fill(slots->secret, sizeof(slots->secret));
	slots->has_secret = true;
}

uint64_t slots_hash(struct slots *slots, const void *bytes, size_t len)
{
	make_secret(slots);
	return hash_of(slots, bytes, len);
}

static void put(struct slots *slots, struct slot slot)
{
	uint32_t i = slot.hash & (slots->n_slots - 1);

	while (slots->slots[i].next)
		i = (i + 1) & (slots->n_slots - 1);
	slots->slots[i] = slot;
}

/* The slot of an item that there is. */
static uint32_t slot_of(const struct slots *slots, uint32_t index)
{
	uint64_t i = hash_of(slots, key_of(slots, index), slots->key_size);

	while (slots->slots[i & (slots->n_slots - 1)].next != index + 1)
		i++;
	return i & (slots->n_slots - 1);
}

/* Empty a slot. Slots behind it move up to where searches still find them. */
static void empty_slot(struct slots *slots, uint32_t gap)
{
	const uint32_t mask = slots->n_slots - 1;

	for (uint32_t i = (gap + 1) & mask; slots->slots[i].next;
	     i = (i + 1) & mask) {
		if (((i - slots->slots[i].hash) & mask) < ((i - gap) & mask))
			continue;
		slots->slots[gap] = slots->slots[i];
		gap = i;
	}
	slots->slots[gap] = (struct slot){ 0 };
}

static bool grow(struct slots *slots)
{
	struct slots more = *slots;

	more.n_slots = slots->n_slots ? 2 * slots->n_slots : FIRST_SLOTS;
	more.slots = calloc(more.n_slots, sizeof(*more.slots));
	if (!more.slots)
		return false;
	for (uint32_t i = 0; i < slots->n_slots; i++)
		if (slots->slots[i].next)
			put(&more, slots->slots[i]);
	free(slots->slots);
	*slots = more;
	return true;
}

static uint32_t find(const struct slots *slots, uint32_t hash, const void *key)
{
	uint32_t i = hash & (slots->n_slots - 1);

	if (!slots->n_slots)
		return SLOT_NONE;
	for (; slots->slots[i].next; i = (i + 1) & (slots->n_slots - 1)) {
		const uint32_t index = slots->slots[i].next - 1;

		if (slots->slots[i].hash == hash &&
		    !memcmp(key_of(slots, index), key, slots->key_size))
			return index;
	}
	return SLOT_NONE;
}

uint32_t slots_find(const struct slots *slots, const void *key)
{
	return find(slots, (uint32_t)hash_of(slots, key, slots->key_size), key);
}

/* At least a quarter of the slots is empty, so that searches end soon. */
uint32_t slots_get(struct slots *slots, const void *key, uint32_t key_size,
		   uint32_t item_size)
{
	const uint32_t hash = (uint32_t)slots_hash(slots, key, key_size);
	uint32_t index = find(slots, hash, key);

	if (index != SLOT_NONE)
		return index;
	if (slots->n >= SLOTS_MAX ||
	    (slots->n >= slots->n_slots / 4 * 3 && !grow(slots)) ||
	    !array_reserve(&slots->items, slots->n, &slots->capacity, item_size,
			   FIRST_ITEMS))
		return SLOT_NONE;
	slots->key_size = key_size;
	slots->item_size = item_size;
	index = slots->n++;
	memset(slots_at(slots, index), 0, item_size);
	memcpy(key_of(slots, index), key, key_size);
	put(slots, (struct slot){ .hash = hash, .next = index + 1 });
	return index;
}

void *slots_item(const struct slots *slots, const void *key)
{
	const uint32_t index = slots_find(slots, key);

	return index == SLOT_NONE ? NULL : slots_at(slots, index);
}

void *slots_add(struct slots *slots, const void *key, uint32_t key_size,
		uint32_t item_size)
{
	const uint32_t index = slots_get(slots, key, key_size, item_size);

	return index == SLOT_NONE ? NULL : slots_at(slots, index);
}

void *slots_pointer(const struct slots *slots, const void *key)
{
	const uint32_t index = slots_find(slots, key);

	return index == SLOT_NONE ? NULL : slots_pointer_at(slots, index);
}

void *slots_pointer_at(const struct slots *slots, uint32_t index)
{
	const char *item = slots_at(slots, index);

	return *(void *const *)(item + slots->key_size);
}

bool slots_set_pointer(struct slots *slots, const void *key, uint32_t key_size,
		       void *pointer)
{
	char *item = slots_add(slots, key, key_size, key_size + sizeof(pointer));

	if (item)
		memcpy(item + key_size, &pointer, sizeof(pointer));
	return item;
}

void slots_remove(struct slots *slots, const void *key)
{
	const uint32_t index = slots_find(slots, key);

	if (index == SLOT_NONE)
		return;
	empty_slot(slots, slot_of(slots, index));
	if (index != slots->n - 1) {
		slots->slots[slot_of(slots, slots->n - 1)].next = index + 1;
		memcpy(slots_at(slots, index), slots_at(slots, slots->n - 1),
		       slots->item_size);
	}
	slots->n--;
}

static void empty(struct slots *slots)
{
	if (slots->n_slots)
		memset(slots->slots, 0, slots->n_slots * sizeof(*slots->slots));
}

void slots_rehash(struct slots *slots)
{
	empty(slots);
	for (uint32_t i = 0; i < slots->n; i++)
		put(slots, (struct slot){ .hash = (uint32_t)hash_of(
						  slots, key_of(slots, i),
						  slots->key_size),
					  .next = i + 1 });
}

void slots_clear(struct slots *slots)
{
	empty(slots);
	slots->n = 0;
}

void slots_free(struct slots *slots)
{
	free(slots->items);
	free(slots->slots);
	*slots = (struct slots){ 0 };
}
