/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Items in an array, found by a hash of their keys, which are in them. */
#ifndef NETOBS_BASE_SLOTS_H
#define NETOBS_BASE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SLOTS_MAX = 1 << 30, /* items */
	SLOTS_BLOCK = 64,    /* bytes that are hashed at once */
};

#define SLOT_NONE UINT32_MAX

struct slot {
	uint32_t hash;
	uint32_t next; /* index of the item, plus 1; 0: the slot is empty */
};

/* All zero: there are none. */
struct slots {
	void *items; /* moves as it grows */
	uint32_t n, capacity;
	uint32_t key_size, item_size;
	uint32_t key_at; /* where the key is in an item, as the owner sets it */
	struct slot *slots;
	uint32_t n_slots; /* a power of two; 0: none yet */
	uint32_t secret[SLOTS_BLOCK / sizeof(uint32_t)];
	bool has_secret;
};

static inline void *slots_at(const struct slots *slots, uint32_t index)
{
	return (char *)slots->items + (size_t)index * slots->item_size;
}

/** @return the hash of @len bytes, by the secret of @slots */
uint64_t slots_hash(struct slots *slots, const void *bytes, size_t len);

/** @return the index of the item with @key, whose bytes are compared; SLOT_NONE: there is none */
uint32_t slots_find(const struct slots *slots, const void *key);

/**
 * Find the item with @key, or add one that is zero but for its key.
 *
 * @param key_size, item_size  the same in each call
 * @return its index; SLOT_NONE: no memory
 */
uint32_t slots_get(struct slots *slots, const void *key, uint32_t key_size,
		   uint32_t item_size);

/** @return the item with @key; NULL: there is none */
void *slots_item(const struct slots *slots, const void *key);

/** As slots_get(). @return the item; NULL: no memory */
void *slots_add(struct slots *slots, const void *key, uint32_t key_size,
		uint32_t item_size);

/** Remove the item with @key, if there is one. The last item gets its place. */
void slots_remove(struct slots *slots, const void *key);

/*
 * Tables whose items are a key, of a multiple of 8 bytes, and a pointer:
 * slots_pointer() returns the pointer of @key, or NULL; slots_set_pointer() returns false: no memory.
 */
void *slots_pointer(const struct slots *slots, const void *key);
void *slots_pointer_at(const struct slots *slots, uint32_t index);
bool slots_set_pointer(struct slots *slots, const void *key, uint32_t key_size,
		       void *pointer);

/** Items have other places, or there are fewer: find them there. */
void slots_rehash(struct slots *slots);

/** Remove all; the memory stays. */
void slots_clear(struct slots *slots);
void slots_free(struct slots *slots);

#endif
