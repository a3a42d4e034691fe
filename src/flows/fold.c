// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "fold.h"

#include "bpf/store/log.h"
#include "bpf/store/tally.h"
#include "base/pages.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
	BATCH = 16,
	INDEX_BITS_MIN = 9, /* a page */
	INDEX_BITS_MAX = 32 - FOLD_INDEX_BITS,
	PREFETCH_PROBES = 4,
	TRIM_CHUNKS = 32, /* a few milliseconds to give back */
};

struct fold_chunk {
	union {
		struct flow_entry entries[FOLD_CHUNK_ENTRIES];
		struct fold_chunk *next; /* while it is spare */
	};
};

_Static_assert(sizeof(struct fold_chunk) == PAGES_HUGE, "is one");

/* ---- Memory ------------------------------------------------------------------- */

/* Most hosts have few flows: a first chunk takes small pages, as it fills up. */
static struct fold_chunk *take_chunk(struct fold *fold, bool is_first)
{
	struct fold_chunk *chunk = fold->spare;

	if (chunk) {
		fold->spare = chunk->next;
		fold->n_spare--;
	} else {
		chunk = pages_map(sizeof(*chunk));
		if (chunk && is_first)
			madvise(chunk, sizeof(*chunk), MADV_NOHUGEPAGE);
	}
	if (!chunk)
		return NULL;
	fold->n_used++;
	fold->used_most = max_u64(fold->used_most, fold->n_used);
	return chunk;
}

static void put_chunk(struct fold *fold, struct fold_chunk *chunk)
{
	fold->n_used--;
	fold->n_spare++;
	chunk->next = fold->spare;
	fold->spare = chunk;
}

static void trim_spare(struct fold *fold, uint32_t most, uint32_t at_once)
{
	while (fold->n_spare > most && at_once--) {
		struct fold_chunk *chunk = fold->spare;

		fold->spare = chunk->next;
		fold->n_spare--;
		pages_unmap(chunk, sizeof(*chunk));
	}
}

/* ---- Indexes ------------------------------------------------------------------ */

static size_t index_bytes(const struct fold_index *index)
{
	return index->slots ? sizeof(*index->slots) << index->bits : 0;
}

static void drop_index(struct fold_index *index)
{
	pages_unmap(index->slots, index_bytes(index));
	*index = (struct fold_index){ 0 };
}

static void drop_indexes(struct fold_generation *g)
{
	for (int i = 0; i < FOLD_INDEXES; i++)
		drop_index(&g->indexes[i]);
}

/* C has no const for both. */
#define index_of(g, hash) (&(g)->indexes[(hash) >> (32 - FOLD_INDEX_BITS)])

/* Neighbours in an index are neighbours in one twice as large. */
static uint32_t index_home(const struct fold_index *index, uint32_t hash)
{
	return hash << FOLD_INDEX_BITS >> (32 - index->bits);
}

static uint32_t index_next(const struct fold_index *index, uint32_t at)
{
	return (at + 1) & ((1U << index->bits) - 1);
}

static void index_put(struct fold_index *index, uint64_t slot)
{
	uint32_t at = index_home(index, slot >> 32);

	while (index->slots[at])
		at = index_next(index, at);
	index->slots[at] = slot;
	index->n_used++;
}

static bool index_resize(struct fold_index *index, uint32_t bits)
{
	struct fold_index old = *index;
	uint64_t *slots = pages_map(sizeof(*slots) << bits);

	if (!slots)
		return false;
	*index = (struct fold_index){ .slots = slots, .bits = bits };
	for (uint64_t i = 0; old.slots && i < 1ULL << old.bits; i++)
		if (old.slots[i])
			index_put(index, old.slots[i]);
	drop_index(&old);
	return true;
}

/*
 * For one entry more: half full is enough, and a little more for later ones, so that not all
 * grow at the same moment; but without memory 7/8 is better than nothing.
 */
static bool index_reserve(struct fold_index *index, uint64_t number)
{
	uint64_t n = 1ULL << index->bits;

	if (!index->slots)
		return index_resize(index, INDEX_BITS_MIN);
	if (index->n_used < n / 2 + number * (n / 8 / FOLD_INDEXES))
		return true;
	if (index->bits < INDEX_BITS_MAX && index_resize(index, index->bits + 1))
		return true;
	return index->n_used < n - n / 8;
}

/* ---- Entries ------------------------------------------------------------------ */

static struct flow_entry *entry_at(const struct fold_generation *g,
				   uint32_t number)
{
	return &g->chunks[number / FOLD_CHUNK_ENTRIES]
			->entries[number % FOLD_CHUNK_ENTRIES];
}

static bool are_equal(const struct flow_key *a, const struct flow_key *b)
{
	const uint64_t *x = (const uint64_t *)a, *y = (const uint64_t *)b;
	uint64_t differ = 0;

	for (size_t i = 0; i < sizeof(*a) / sizeof(*x); i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

static inline struct flow_entry *find_entry(const struct fold_generation *g,
					    const struct flow_key *key,
					    uint32_t hash)
{
	const struct fold_index *index = index_of(g, hash);

	if (!index->slots)
		return NULL;
	for (uint32_t at = index_home(index, hash);; at = index_next(index, at)) {
		uint64_t slot = index->slots[at];
		struct flow_entry *entry;

		if (!slot)
			return NULL;
		if (slot >> 32 != hash)
			continue;
		entry = entry_at(g, (uint32_t)slot - 1);
		if (are_equal(&entry->key, key))
			return entry;
	}
}

static uint64_t count_kept(const struct fold *fold)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < GENERATIONS; i++) {
		const struct fold_generation *g = &fold->generations[i];
		uint64_t released = (uint64_t)g->n_released * FOLD_CHUNK_ENTRIES;

		n += g->n_entries - min_u64(released, g->n_entries);
	}
	return n;
}

/* A quarter is left for the flows that come until the drain begins. */
bool fold_is_filling(const struct fold *fold, uint32_t generation)
{
	uint32_t n = fold->generations[generation].n_entries;

	return n && (n >= fold->max_entries - fold->max_entries / 4 ||
		     count_kept(fold) >= fold->max_total - fold->max_total / 4);
}

static bool reserve_chunk(struct fold *fold, struct fold_generation *g)
{
	uint32_t capacity = g->capacity * 2 ?: 8;
	struct fold_chunk **chunks;

	if (g->n_entries < g->n_chunks * (uint64_t)FOLD_CHUNK_ENTRIES)
		return true;
	if (g->n_chunks == g->capacity) {
		chunks = reallocarray(g->chunks, capacity, sizeof(*chunks));
		if (!chunks)
			return false;
		g->chunks = chunks;
		g->capacity = capacity;
	}
	g->chunks[g->n_chunks] = take_chunk(fold, !g->n_chunks);
	g->n_chunks += g->chunks[g->n_chunks] != NULL;
	return g->n_entries < g->n_chunks * (uint64_t)FOLD_CHUNK_ENTRIES;
}

static __attribute__((noinline)) int insert_entry(struct fold *fold,
						  struct fold_generation *g,
						  const struct flow_entry *entry,
						  uint32_t hash)
{
	struct fold_index *index = index_of(g, hash);

	if (g->is_closed || g->n_entries >= fold->max_entries ||
	    count_kept(fold) >= fold->max_total)
		return -ENOSPC;
	if (!index_reserve(index, index - g->indexes) || !reserve_chunk(fold, g))
		return -ENOMEM;
	*entry_at(g, g->n_entries) = *entry;
	index_put(index, (uint64_t)hash << 32 | ++g->n_entries);
	return 0;
}

static uint32_t hash_of(const struct fold *fold, const struct flow_key *key)
{
	return hash_key(key, fold->secret) >> 32;
}

int fold_add_entry(struct fold *fold, uint32_t generation,
		   const struct flow_entry *entry)
{
	struct fold_generation *g = &fold->generations[generation];
	uint32_t hash = hash_of(fold, &entry->key);
	struct flow_entry *known = find_entry(g, &entry->key, hash);

	if (!known)
		return insert_entry(fold, g, entry, hash);
	tally_add(&known->tally, &entry->tally);
	return 0;
}

/* ---- Batches ------------------------------------------------------------------ */

struct batch {
	const struct log_slot *records[BATCH];
	uint32_t hashes[BATCH];
	int n;
};

static uint32_t hash_record(const struct fold *fold, const struct log_slot *slot)
{
	struct flow_key key;

	if (!is_log_long(slot))
		return slot->hash;
	log_read_key(slot, &key);
	return hash_of(fold, &key);
}

/* Returns the slots of the batch's records. */
static size_t begin_batch(const struct fold *fold, struct batch *batch,
			  const struct log_slot *slots, size_t n)
{
	size_t used = 0;

	for (batch->n = 0; batch->n < BATCH && used < n; batch->n++) {
		const struct log_slot *slot = &slots[used];
		const struct fold_generation *g =
			&fold->generations[log_generation(slot)];
		const struct fold_index *index;
		uint32_t hash;

		if (used + 1 + is_log_long(slot) > n)
			break;
		__builtin_prefetch(slot + BATCH);
		hash = hash_record(fold, slot);
		batch->records[batch->n] = slot;
		batch->hashes[batch->n] = hash;
		index = index_of(g, hash);
		if (index->slots)
			__builtin_prefetch(&index->slots[index_home(index, hash)]);
		used += 1 + is_log_long(slot);
	}
	return used;
}

static void prefetch_entry(const struct fold_generation *g, uint32_t hash)
{
	const struct fold_index *index = index_of(g, hash);
	uint32_t at;

	if (!index->slots)
		return;
	at = index_home(index, hash);
	for (int i = 0; i < PREFETCH_PROBES; i++, at = index_next(index, at)) {
		uint64_t slot = index->slots[at];

		if (slot >> 32 == hash && slot) {
			const struct flow_entry *entry =
				entry_at(g, (uint32_t)slot - 1);

			__builtin_prefetch(&entry->key);
			__builtin_prefetch(&entry->tally, 1);
			return;
		}
		if (!slot)
			return;
	}
}

/* The record of a known flow is added without making it an entry. */
static int add_record(struct fold *fold, const struct log_slot *slot,
		      uint32_t hash)
{
	struct fold_generation *g = &fold->generations[log_generation(slot)];
	struct flow_entry entry, *known;
	struct flow_tally tally;
	struct flow_key key;

	log_read_key(slot, &key);
	known = find_entry(g, &key, hash);
	if (!known) {
		log_read(slot, &entry);
		return insert_entry(fold, g, &entry, hash);
	}
	if (is_log_long(slot)) {
		tally_add(&known->tally, (const struct flow_tally *)(slot + 1));
	} else {
		log_read_tally(slot, &tally);
		tally_add(&known->tally, &tally);
	}
	return 0;
}

/* Returns slots used, fewer than there are if a record is refused. */
static size_t end_batch(struct fold *fold, const struct batch *batch)
{
	size_t used = 0;

	for (int i = 0; i < batch->n; i++)
		prefetch_entry(
			&fold->generations[log_generation(batch->records[i])],
			batch->hashes[i]);
	for (int i = 0; i < batch->n; i++) {
		const struct log_slot *slot = batch->records[i];

		if (add_record(fold, slot, batch->hashes[i]))
			break;
		used += 1 + is_log_long(slot);
	}
	return used;
}

size_t fold_add(struct fold *fold, const struct log_slot *slots, size_t n)
{
	size_t used = 0;

	while (used < n) {
		struct batch batch;
		size_t wanted = begin_batch(fold, &batch, slots + used, n - used);
		size_t got = end_batch(fold, &batch);

		used += got;
		if (!wanted || got < wanted)
			break;
	}
	return used;
}

/* ---- Reading ------------------------------------------------------------------ */

size_t fold_entries(const struct fold *fold, uint32_t generation, uint32_t from,
		    const struct flow_entry **ret_entries)
{
	const struct fold_generation *g = &fold->generations[generation];

	if (from >= g->n_entries)
		return 0;
	*ret_entries = entry_at(g, from);
	return min_u64(g->n_entries - from,
		       FOLD_CHUNK_ENTRIES - from % FOLD_CHUNK_ENTRIES);
}

void fold_release(struct fold *fold, uint32_t generation, uint32_t before)
{
	struct fold_generation *g = &fold->generations[generation];
	uint32_t n = before / FOLD_CHUNK_ENTRIES;

	if (before >= g->n_entries)
		n = g->n_chunks;
	drop_indexes(g);
	g->is_closed = true;
	for (; g->n_released < n; g->n_released++)
		put_chunk(fold, g->chunks[g->n_released]);
}

void fold_reset(struct fold *fold, uint32_t generation)
{
	struct fold_generation *g = &fold->generations[generation];
	uint32_t most;

	fold_release(fold, generation, UINT32_MAX);
	free(g->chunks);
	*g = (struct fold_generation){ 0 };
	most = max_u64(fold->used_most, fold->used_before);
	trim_spare(fold, most - fold->n_used, TRIM_CHUNKS);
	fold->used_before = fold->used_most;
	fold->used_most = fold->n_used;
}

/* ---- All of it ---------------------------------------------------------------- */

void fold_init(struct fold *fold, const struct hash_secret *secret,
	       uint64_t max_entries, uint64_t max_bytes)
{
	*fold = (struct fold){
		.secret = secret,
		.max_entries = max_entries,
		.max_total = max_bytes ? max_bytes / FOLD_ENTRY_BYTES : UINT64_MAX,
	};
}

void fold_done(struct fold *fold)
{
	for (uint32_t generation = 0; generation < GENERATIONS; generation++)
		fold_reset(fold, generation);
	trim_spare(fold, 0, UINT32_MAX);
}

uint64_t fold_bytes(const struct fold *fold)
{
	uint64_t chunks = fold->n_used + fold->n_spare;
	uint64_t sum = chunks * sizeof(struct fold_chunk);

	for (int g = 0; g < GENERATIONS; g++) {
		const struct fold_generation *generation = &fold->generations[g];

		sum += generation->capacity * sizeof(struct fold_chunk *);
		for (int i = 0; i < FOLD_INDEXES; i++)
			sum += index_bytes(&generation->indexes[i]);
	}
	return sum;
}
