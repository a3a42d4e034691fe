/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Folds the records of all logs into entries: one per flow, interface and direction, with the sum of
 * its packets. Most flows of a busy host are here until their interval ends.
 *
 * Each generation has two lists of entries, short ones (short_entry.h) and long ones. A list only
 * grows, so an entry never moves, and its number is its place: entry i is in chunk i / n, at i % n.
 * Indexes lead from keys to places. They are hash tables of 8-byte slots with 32 bits of a hash and a
 * place. Each generation has 16 of them, by the upper bits of the hash: each doubles by itself, so no
 * call takes long.
 *
 * Say a log has records of the flows A, B and A again, none of which has an entry yet. A gets short
 * entry 0, and a slot for it; B gets short entry 1; the second record of A finds the slot and is added
 * to entry 0. Were the sum too large for a short entry, A would get a long entry, 0 of its list, with
 * this record and all later ones. Both entries are read then, and their receiver adds them up.
 *
 * A record that finds neither its slot nor its entry in the caches waits for memory twice. So records
 * are added in batches of 16: first all slots are prefetched, then all entries that these lead to, and
 * then the records are added.
 *
 * A drain reads a generation by numbers, releases the chunks that it has read, and resets it. Released
 * chunks hold the entries of the other generation next, so a fold that has grown to the size of the
 * traffic needs no new pages from the kernel.
 */
#ifndef NETOBS_FLOWS_FOLD_H
#define NETOBS_FLOWS_FOLD_H

#include "base/pages.h"
#include "bpf/store/hash.h"
#include "short_entry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Entries ------------------------------------------------------------------------ */

enum {
	FOLD_INDEX_BITS = 4,
	FOLD_INDEXES = 1 << FOLD_INDEX_BITS,
	/* An entry, and its part of the index when that was just resized. */
	FOLD_INDEX_BYTES = 6 * sizeof(uint64_t),
	FOLD_SHORT_BYTES = sizeof(struct short_entry) + FOLD_INDEX_BYTES,
	FOLD_LONG_BYTES = sizeof(struct flow_entry) + FOLD_INDEX_BYTES,
};

enum fold_form { FOLD_SHORT, FOLD_LONG, FOLD_FORMS };

enum {
	CHUNK_SHORT = PAGES_HUGE / sizeof(struct short_entry),
	CHUNK_LONG = PAGES_HUGE / sizeof(struct flow_entry),
};

struct fold_chunk {
	union {
		struct short_entry shorts[CHUNK_SHORT];
		struct flow_entry longs[CHUNK_LONG];
		struct fold_chunk *next; /* while it is spare */
	};
};

_Static_assert(sizeof(struct fold_chunk) == PAGES_HUGE, "a huge page");

/* ---- The fold ----------------------------------------------------------------------- */

struct fold_generation {
	struct fold_list {
		struct fold_chunk **chunks;
		uint32_t n_chunks;   /* entries are in */
		uint32_t n_released; /* of these, the first ones */
		uint32_t capacity;   /* of `chunks` */
		uint32_t n_entries;
	} lists[FOLD_FORMS];
	bool is_closed; /* from its first release to its reset */
	struct fold_index {
		uint64_t *slots; /* hash << 32 | place; 0: free */
		uint32_t bits;	 /* log2 of how many there are */
		uint32_t n_used;
	} indexes[FOLD_INDEXES]; /* by the upper bits of the hash */
};

struct fold {
	const struct hash_secret *secret;
	uint64_t max_entries; /* of a generation */
	uint64_t max_bytes; /* limit of memory of both generations, without released chunks */
	struct fold_generation generations[GENERATIONS];
	struct fold_chunk *spare; /* a list */
	uint32_t n_spare;
	uint32_t n_used;      /* chunks of both generations */
	uint32_t used_most;   /* since the last reset, */
	uint32_t used_before; /* and between the last two resets */
};

/**
 * @param secret       that the hashes in records are of; stays the caller's
 * @param max_entries  of each generation
 * @param max_bytes    of memory, about; 0: no limit
 */
void fold_init(struct fold *fold, const struct hash_secret *secret,
	       uint64_t max_entries, uint64_t max_bytes);

void fold_done(struct fold *fold);

/**
 * Add the records in @slots, each to its generation.
 *
 * @return slots used, all of them but where the last one is the first half of a record;
 *         fewer if a new entry is beyond the limit, memory is refused, or the generation
 *         is being read
 */
size_t fold_add(struct fold *fold, const struct log_slot *slots, size_t n);

/**
 * Add an entry that was summed up elsewhere.
 *
 * @return 0; -ENOSPC: a new one is beyond the limit, or the generation is being read;
 *         -ENOMEM
 */
int fold_add_entry(struct fold *fold, uint32_t generation,
		   const struct flow_entry *entry);

/**
 * Read entries in the order of their numbers.
 *
 * @param from         number of the first one
 * @param room         for @n entries, where those that are short become long
 * @param ret_entries  up to @n, here or in the table
 * @return how many there are; 0: there is no such number
 */
uint32_t fold_read(const struct fold *fold, uint32_t generation, uint32_t from,
		   struct flow_entry *room,
		   const struct flow_entry **ret_entries, uint32_t n);

/** Entries with numbers below @before are no longer needed. New entries are refused until fold_reset(). */
void fold_release(struct fold *fold, uint32_t generation, uint32_t before);

/**
 * Remove all entries. Memory that neither this interval nor the one before needed
 * is given back, some of it each time.
 */
void fold_reset(struct fold *fold, uint32_t generation);

/** @return entries of a generation, with those that were released */
static inline uint32_t fold_count(const struct fold *fold, uint32_t generation)
{
	const struct fold_list *lists = fold->generations[generation].lists;

	return lists[FOLD_SHORT].n_entries + lists[FOLD_LONG].n_entries;
}

/**
 * @param coming  entries that may come until a drain begins; a quarter of the fold is enough
 * @return whether so few more entries are possible in @generation that it should be
 *         drained
 */
bool fold_is_filling(const struct fold *fold, uint32_t generation,
		     uint64_t coming);

/** @return memory, in bytes */
uint64_t fold_bytes(const struct fold *fold);

#endif
