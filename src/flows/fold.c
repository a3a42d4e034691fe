// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "fold.h"

#include "bpf/store/attrs.h"
#include "bpf/store/log.h"
#include "base/pages.h"
#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
	BATCH = 16,
	INDEX_BITS_MIN = 9, /* a page */
	INDEX_BITS_MAX = 31,
	PREFETCH_PROBES = 4,
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

static void trim_spare(struct fold *fold, uint32_t most)
{
	while (fold->n_spare > most) {
		struct fold_chunk *chunk = fold->spare;

		fold->spare = chunk->next;
		fold->n_spare--;
		pages_unmap(chunk, sizeof(*chunk));
	}
}

/* ---- The index ---------------------------------------------------------------- */

static size_t index_bytes(const struct fold_generation *g)
{
	return g->index ? sizeof(*g->index) << g->index_bits : 0;
}

static void drop_index(struct fold_generation *g)
{
	pages_unmap(g->index, index_bytes(g));
	g->index = NULL;
}

/* Neighbours in an index are neighbours in one twice as large. */
static uint32_t index_home(const struct fold_generation *g, uint32_t hash)
{
	return hash >> (32 - g->index_bits);
}

static uint32_t index_next(const struct fold_generation *g, uint32_t at)
{
	return (at + 1) & ((1U << g->index_bits) - 1);
}

static void index_put(struct fold_generation *g, uint64_t slot)
{
	uint32_t at = index_home(g, slot >> 32);

	while (g->index[at])
		at = index_next(g, at);
	g->index[at] = slot;
}

static bool index_resize(struct fold_generation *g, uint32_t bits)
{
	struct fold_generation old = *g;
	uint64_t *index = pages_map(sizeof(*index) << bits);

	if (!index)
		return false;
	g->index = index;
	g->index_bits = bits;
	for (uint64_t i = 0; old.index && i < 1ULL << old.index_bits; i++)
		if (old.index[i])
			index_put(g, old.index[i]);
	drop_index(&old);
	return true;
}

/* For one entry more: half full is enough, but without memory 7/8 is better than nothing. */
static bool index_reserve(struct fold_generation *g)
{
	uint64_t slots = 1ULL << g->index_bits;

	if (!g->index)
		return index_resize(g, INDEX_BITS_MIN);
	if (g->n_entries < slots / 2)
		return true;
	if (g->index_bits < INDEX_BITS_MAX && index_resize(g, g->index_bits + 1))
		return true;
	return g->n_entries < slots - slots / 8;
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
	if (!g->index)
		return NULL;
	for (uint32_t at = index_home(g, hash);; at = index_next(g, at)) {
		uint64_t slot = g->index[at];
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

static inline void add_tally(struct flow_tally *to, const struct flow_tally *from)
{
	to->packets += from->packets;
	to->bytes += from->bytes;
	to->l2_bytes += from->l2_bytes;
	to->attrs.marks |= from->attrs.marks;
	attrs_merge(&to->attrs, &from->attrs, from->first_ns < to->first_ns,
		    from->last_ns >= to->last_ns);
	if (from->first_ns < to->first_ns)
		to->first_ns = from->first_ns;
	if (from->last_ns > to->last_ns)
		to->last_ns = from->last_ns;
	if (from->attrs.has_mac && !to->attrs.has_mac) {
		to->attrs.has_mac = from->attrs.has_mac;
		memcpy(to->macs, from->macs, sizeof(to->macs));
	}
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
	uint64_t n = (uint64_t)fold->generations[0].n_entries +
		     fold->generations[1].n_entries;

	assert(g->index || !g->n_entries); /* not released */
	if (fold->max_entries && n >= fold->max_entries)
		return -ENOSPC;
	if (!index_reserve(g) || !reserve_chunk(fold, g))
		return -ENOMEM;
	*entry_at(g, g->n_entries) = *entry;
	index_put(g, (uint64_t)hash << 32 | ++g->n_entries);
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
	add_tally(&known->tally, &entry->tally);
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
		uint32_t hash;

		if (used + 1 + is_log_long(slot) > n)
			break;
		__builtin_prefetch(slot + BATCH);
		hash = hash_record(fold, slot);
		batch->records[batch->n] = slot;
		batch->hashes[batch->n] = hash;
		if (g->index)
			__builtin_prefetch(&g->index[index_home(g, hash)]);
		used += 1 + is_log_long(slot);
	}
	return used;
}

static void prefetch_entry(const struct fold_generation *g, uint32_t hash)
{
	uint32_t at;

	if (!g->index)
		return;
	at = index_home(g, hash);
	for (int i = 0; i < PREFETCH_PROBES; i++, at = index_next(g, at)) {
		uint64_t slot = g->index[at];

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
		add_tally(&known->tally, (const struct flow_tally *)(slot + 1));
	} else {
		log_read_tally(slot, &tally);
		add_tally(&known->tally, &tally);
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
	drop_index(g);
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
	trim_spare(fold, most - fold->n_used);
	fold->used_before = fold->used_most;
	fold->used_most = fold->n_used;
}

/* ---- All of it ---------------------------------------------------------------- */

void fold_init(struct fold *fold, const struct hash_secret *secret,
	       uint64_t max_entries)
{
	*fold = (struct fold){ .secret = secret, .max_entries = max_entries };
}

void fold_done(struct fold *fold)
{
	for (uint32_t generation = 0; generation < GENERATIONS; generation++)
		fold_reset(fold, generation);
	trim_spare(fold, 0);
}

uint64_t fold_bytes(const struct fold *fold)
{
	uint64_t chunks = fold->n_used + fold->n_spare;
	uint64_t sum = chunks * sizeof(struct fold_chunk);

	for (int i = 0; i < GENERATIONS; i++)
		sum += index_bytes(&fold->generations[i]) +
		       fold->generations[i].capacity *
			       sizeof(struct fold_chunk *);
	return sum;
}
