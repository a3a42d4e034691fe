// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "fold.h"

#include "base/util.h"

#include <errno.h>
#include <sys/mman.h>

enum {
	BATCH = 16,
	INDEX_BITS_MIN = 9, /* a page */
	INDEX_BITS_MAX = 32 - FOLD_INDEX_BITS,
	PREFETCH_PROBES = 4,
	TRIM_CHUNKS = 32, /* a few milliseconds to give back */
};

static const uint32_t chunk_entries[FOLD_FORMS] = { CHUNK_SHORT, CHUNK_LONG };
static const uint32_t entry_bytes[FOLD_FORMS] = { FOLD_SHORT_BYTES,
						  FOLD_LONG_BYTES };

/* ---- Memory ------------------------------------------------------------------- */

/* Most hosts have few flows: a first chunk takes small pages, as it fills up. */
static struct fold_chunk *map_chunk(bool is_first)
{
	struct fold_chunk *chunk = pages_map(sizeof(*chunk));

	if (chunk && is_first)
		madvise(chunk, sizeof(*chunk), MADV_NOHUGEPAGE);
	return chunk;
}

static struct fold_chunk *take_spare(struct fold *fold)
{
	struct fold_chunk *chunk = fold->spare;

	if (!chunk)
		return NULL;
	fold->spare = chunk->next;
	fold->n_spare--;
	return chunk;
}

static struct fold_chunk *take_chunk(struct fold *fold, bool is_first)
{
	struct fold_chunk *chunk = take_spare(fold);

	if (!chunk)
		chunk = map_chunk(is_first);
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
	while (fold->n_spare > most && at_once--)
		pages_unmap(take_spare(fold), sizeof(struct fold_chunk));
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
 * Make room for one more entry. An index grows when it is half full, later ones a little later, so
 * that not all grow at the same moment; without memory, an index may fill up to 7/8.
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

/* A place in an index is the number of an entry in its list, plus 1. This bit marks long entries. */
#define PLACE_LONG (1U << 31)

enum { LIST_MAX = PLACE_LONG - 2 };

static bool is_long(uint32_t place)
{
	return place & PLACE_LONG;
}

static uint32_t find_chunk_number(uint32_t place)
{
	return (place & ~PLACE_LONG) - 1;
}

static inline struct short_entry *short_at(const struct fold_generation *g,
					   uint32_t number)
{
	return &g->lists[FOLD_SHORT]
			.chunks[number / CHUNK_SHORT]
			->shorts[number % CHUNK_SHORT];
}

static inline struct flow_entry *long_at(const struct fold_generation *g,
					 uint32_t number)
{
	return &g->lists[FOLD_LONG]
			.chunks[number / CHUNK_LONG]
			->longs[number % CHUNK_LONG];
}

static bool are_equal(const struct flow_key *a, const struct flow_key *b)
{
	const uint64_t *x = (const uint64_t *)a, *y = (const uint64_t *)b;
	uint64_t differ = 0;

	for (size_t i = 0; i < sizeof(*a) / sizeof(*x); i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

/* A key in the form in which it is looked for. */
struct sought {
	const struct flow_key *key; /* NULL: it has a short form */
	struct short_key short_key;
};

static inline struct sought seek_key(const struct flow_key *key)
{
	struct sought sought = { 0 };

	if (!short_key_make(key, &sought.short_key))
		sought.key = key;
	return sought;
}

/* @room: for a key without a short form. */
static inline struct sought seek_record(const struct log_slot *slot,
					struct flow_key *room)
{
	struct sought sought = { 0 };

	if (!is_log_long(slot) && short_key_of_slot(slot, &sought.short_key))
		return sought;
	log_read_key(slot, room);
	return seek_key(room);
}

static bool is_of(const struct fold_generation *g, uint32_t place,
		  const struct sought *sought)
{
	const struct flow_key *key;
	struct short_key short_key;

	if (!is_long(place))
		return !sought->key &&
		       short_entry_has(short_at(g, find_chunk_number(place)),
				       &sought->short_key);
	key = &long_at(g, find_chunk_number(place))->key;
	if (sought->key)
		return are_equal(key, sought->key);
	return short_key_make(key, &short_key) &&
	       short_keys_are_equal(&short_key, &sought->short_key);
}

/* @return the slot of the index with the last entry of that key; NULL: there is none */
static inline uint64_t *find_slot(const struct fold_generation *g,
				  const struct sought *sought, uint32_t hash)
{
	const struct fold_index *index = index_of(g, hash);

	if (!index->slots)
		return NULL;
	for (uint32_t at = index_home(index, hash);; at = index_next(index, at)) {
		uint64_t *slot = &index->slots[at];

		if (!*slot)
			return NULL;
		if (*slot >> 32 == hash && is_of(g, (uint32_t)*slot, sought))
			return slot;
	}
}

/* @return entries that are not in released chunks */
static uint32_t count_kept(const struct fold_list *list, enum fold_form form)
{
	uint64_t released = (uint64_t)list->n_released * chunk_entries[form];

	return list->n_entries - min_u64(released, list->n_entries);
}

static uint64_t kept_bytes(const struct fold *fold)
{
	uint64_t sum = 0;

	for (int i = 0; i < GENERATIONS; i++)
		for (enum fold_form form = 0; form < FOLD_FORMS; form++)
			sum += (uint64_t)entry_bytes[form] *
			       count_kept(&fold->generations[i].lists[form],
					  form);
	return sum;
}

/*
 * Room is left for the flows that come until the drain begins, but no more than necessary: a
 * drain ahead of time costs a record of each flow.
 */
bool fold_is_filling(const struct fold *fold, uint32_t generation, uint64_t coming)
{
	uint64_t room = min_u64(fold->max_entries / 4, coming);
	uint32_t n = fold_count(fold, generation);

	return n && (n >= fold->max_entries - room ||
		     kept_bytes(fold) >= fold->max_bytes - fold->max_bytes / 4);
}

static bool has_room(const struct fold_list *list, enum fold_form form)
{
	return list->n_entries < list->n_chunks * (uint64_t)chunk_entries[form];
}

static bool reserve_chunk(struct fold *fold, struct fold_generation *g,
			  enum fold_form form)
{
	struct fold_list *list = &g->lists[form];
	struct fold_chunk *chunk;

	if (has_room(list, form))
		return true;
	if (!array_reserve(&list->chunks, list->n_chunks, &list->capacity,
			   sizeof(struct fold_chunk *), 8))
		return false;
	chunk = take_chunk(fold, !list->n_chunks);
	if (!chunk)
		return false;
	list->chunks[list->n_chunks++] = chunk;
	return true;
}

/* Returns its place; there is room. */
static uint32_t append_entry(struct fold_generation *g,
			     const struct flow_entry *entry,
			     const struct short_entry *as_short)
{
	enum fold_form form = as_short ? FOLD_SHORT : FOLD_LONG;
	uint32_t number = g->lists[form].n_entries++;

	if (as_short)
		*short_at(g, number) = *as_short;
	else
		*long_at(g, number) = *entry;
	return (number + 1) | (as_short ? 0 : PLACE_LONG);
}

/* @known: where the index has an entry of the same key, which is full; or NULL. */
static __attribute__((noinline)) int
insert_entry(struct fold *fold, struct fold_generation *g,
	     const struct flow_entry *entry, uint32_t hash, uint64_t *known)
{
	uint32_t n_entries = fold_count(fold, g - fold->generations);
	struct fold_index *index = index_of(g, hash);
	struct short_entry as_short;
	bool is_short = !known && short_entry_write(&as_short, entry);
	enum fold_form form = is_short ? FOLD_SHORT : FOLD_LONG;
	uint64_t slot;

	if (g->is_closed || n_entries >= min_u64(fold->max_entries, LIST_MAX) ||
	    kept_bytes(fold) + entry_bytes[form] > fold->max_bytes)
		return -ENOSPC;
	if (!known && !index_reserve(index, index - g->indexes))
		return -ENOMEM;
	if (!reserve_chunk(fold, g, form))
		return -ENOMEM;
	slot = (uint64_t)hash << 32 |
	       append_entry(g, entry, is_short ? &as_short : NULL);
	if (known)
		*known = slot;
	else
		index_put(index, slot);
	return 0;
}

static uint32_t hash_of(const struct fold *fold, const struct flow_key *key)
{
	return hash_key(key, fold->secret) >> 32;
}

/* False: the entry at @place is full. */
static inline bool add_to(const struct fold_generation *g, uint32_t place,
			  const struct flow_tally *tally)
{
	uint32_t number = find_chunk_number(place);

	if (!is_long(place))
		return short_entry_add(short_at(g, number), tally);
	tally_add(&long_at(g, number)->tally, tally);
	return true;
}

int fold_add_entry(struct fold *fold, uint32_t generation,
		   const struct flow_entry *entry)
{
	struct fold_generation *g = &fold->generations[generation];
	uint32_t hash = hash_of(fold, &entry->key);
	struct sought sought = seek_key(&entry->key);
	uint64_t *known = find_slot(g, &sought, hash);

	if (known && add_to(g, (uint32_t)*known, &entry->tally))
		return 0;
	return insert_entry(fold, g, entry, hash, known);
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

static void prefetch_place(const struct fold_generation *g, uint32_t place)
{
	uint32_t number = find_chunk_number(place);

	if (!is_long(place)) {
		__builtin_prefetch(short_at(g, number), 1);
		return;
	}
	__builtin_prefetch(&long_at(g, number)->key);
	__builtin_prefetch(&long_at(g, number)->tally, 1);
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
			prefetch_place(g, (uint32_t)slot);
			return;
		}
		if (!slot)
			return;
	}
}

/* The record of a known flow is added without making it an entry. */
static int fold_record(struct fold *fold, const struct log_slot *slot,
		       uint32_t hash)
{
	struct fold_generation *g = &fold->generations[log_generation(slot)];
	struct flow_entry entry;
	struct sought sought = seek_record(slot, &entry.key);
	uint64_t *known = find_slot(g, &sought, hash);
	const struct flow_tally *tally = (const struct flow_tally *)(slot + 1);

	if (known && !is_log_long(slot)) {
		log_read_tally(slot, &entry.tally);
		tally = &entry.tally;
	}
	if (known && add_to(g, (uint32_t)*known, tally))
		return 0;
	log_read(slot, &entry);
	return insert_entry(fold, g, &entry, hash, known);
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

		if (fold_record(fold, slot, batch->hashes[i]))
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

uint32_t fold_read(const struct fold *fold, uint32_t generation, uint32_t from,
		   struct flow_entry *room,
		   const struct flow_entry **ret_entries, uint32_t n)
{
	const struct fold_generation *g = &fold->generations[generation];
	const uint32_t n_short = g->lists[FOLD_SHORT].n_entries;
	const uint32_t n_here =
		min_u64(n, fold_count(fold, generation) - (uint64_t)from);

	for (uint32_t i = 0; i < n_here; i++, from++) {
		if (from >= n_short) {
			ret_entries[i] = long_at(g, from - n_short);
			continue;
		}
		short_entry_read(short_at(g, from), &room[i]);
		ret_entries[i] = &room[i];
	}
	return n_here;
}

/* Release the chunks whose entries have numbers below @before in the list. */
static void release_list(struct fold *fold, struct fold_list *list,
			 enum fold_form form, uint32_t before)
{
	uint32_t n = before / chunk_entries[form];

	if (before >= list->n_entries)
		n = list->n_chunks;
	for (; list->n_released < n; list->n_released++)
		put_chunk(fold, list->chunks[list->n_released]);
}

static void close_generation(struct fold_generation *g)
{
	drop_indexes(g);
	g->is_closed = true;
}

static void release_lists(struct fold *fold, struct fold_generation *g,
			  uint32_t before)
{
	uint32_t n_short = min_u64(before, g->lists[FOLD_SHORT].n_entries);

	release_list(fold, &g->lists[FOLD_SHORT], FOLD_SHORT, n_short);
	release_list(fold, &g->lists[FOLD_LONG], FOLD_LONG, before - n_short);
}

void fold_release(struct fold *fold, uint32_t generation, uint32_t before)
{
	struct fold_generation *g = &fold->generations[generation];

	close_generation(g);
	release_lists(fold, g, before);
}

void fold_reset(struct fold *fold, uint32_t generation)
{
	struct fold_generation *g = &fold->generations[generation];
	uint32_t most;

	close_generation(g);
	release_lists(fold, g, UINT32_MAX);
	for (enum fold_form form = 0; form < FOLD_FORMS; form++)
		free(g->lists[form].chunks);
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
		.max_bytes = max_bytes ?: UINT64_MAX,
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

		for (enum fold_form form = 0; form < FOLD_FORMS; form++)
			sum += generation->lists[form].capacity *
			       sizeof(struct fold_chunk *);
		for (int i = 0; i < FOLD_INDEXES; i++)
			sum += index_bytes(&generation->indexes[i]);
	}
	return sum;
}
