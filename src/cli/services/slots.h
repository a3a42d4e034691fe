/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Finds elements of an array by a hash. All zero: there are none. */
#ifndef NETOBS_CLI_SERVICES_SLOTS_H
#define NETOBS_CLI_SERVICES_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SLOTS_MAX = 1 << 30, /* elements */
	SLOTS_KEY_MAX = 64,  /* bytes */
};

#define SLOT_NONE UINT32_MAX

struct slot {
	uint32_t hash;
	uint32_t next; /* index of the element, plus 1; 0: the slot is empty */
};

struct slots {
	struct slot *slots;
	uint32_t size; /* a power of two; 0: none yet */
	uint32_t n;
	uint32_t secret[SLOTS_KEY_MAX / sizeof(uint32_t)];
	bool has_secret;
};

/** @return the hash of a key, whose size @len is a multiple of 8 */
uint64_t slots_hash(struct slots *slots, const void *key, size_t len);

/** @return whether the element at @index of @array has @key */
typedef bool slot_same_fn(const void *array, uint32_t index, const void *key);

/** @return the index of the element; SLOT_NONE: not found */
uint32_t slots_find(const struct slots *slots, uint64_t hash,
		    slot_same_fn *is_same, const void *array, const void *key);

/** Add element number @index, which is not there. @return false: no memory */
bool slots_add(struct slots *slots, uint64_t hash, uint32_t index);

/** Remove all; the memory stays. */
void slots_clear(struct slots *slots);
void slots_free(struct slots *slots);

/* ---- Texts ----------------------------------------------------------------------------- */

/* Texts by numbers, so that thousands of conversations of one workload have its name once. */

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

/* ---- Seen ------------------------------------------------------------------------------ */

/* Lines that were read, to find those that repeat: by hashes of 64 bits, with a secret. */

enum {
	SEEN_MAX = 1 << 25, /* lines; later ones are all new */
	SEEN_BLOCK = 256,
};

/* All zero: none. */
struct seen {
	uint64_t *hashes;
	uint32_t size, n;
	uint32_t secret[SEEN_BLOCK / sizeof(uint32_t)];
	bool is_full; /* some lines were not noted */
};

/**
 * @param salt  distinguishes equal lines
 * @return whether the line is new
 */
bool seen_add(struct seen *seen, const char *line, size_t len, uint64_t salt);

void seen_free(struct seen *seen);

#endif
