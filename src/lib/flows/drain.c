// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "pipeline.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

enum {
	WINDOW = 64,   /* buckets of L1 per slice: 1024 entries */
	SLICE = 1024,  /* folded entries */
	LARGE = 16384, /* folded entries from which a second reading pays */
};

void drain_init(struct drain *drain, struct store *store, struct fold *fold,
		drain_entries_fn *on_entries, void *ctx)
{
	*drain = (struct drain){
		.store = store,
		.fold = fold,
		.on_entries = on_entries,
		.ctx = ctx,
	};
}

void drain_start(struct drain *drain, uint32_t generation)
{
	struct counters counters;

	store_read_counters(drain->store, generation, &counters);
	drain->phase = counters.spilled.packets == drain->spilled[generation] ?
			       DRAIN_L1 :
			       DRAIN_OVERFLOW;
	drain->spilled[generation] = counters.spilled.packets;
	drain->generation = generation;
	drain->cpu = 0;
	drain->bucket = 0;
	drain->next = 0;
	drain->n_folded = fold_count(drain->fold, generation);
}

/* If the fold has no room for an entry, report it at once. */
static void on_overflow(void *ctx, const struct flow_entry *entry)
{
	const struct drain *drain = ctx;

	if (fold_add_entry(drain->fold, drain->generation, entry))
		drain->on_entries(drain->ctx, DRAIN_ONLY, &entry, 1);
}

static int step_overflow(struct drain *drain)
{
	int ret = overflow_take(&drain->store->overflow, drain->generation,
				on_overflow, drain);

	if (ret)
		return ret;
	drain->n_folded = fold_count(drain->fold, drain->generation);
	drain->phase = DRAIN_L1;
	return 1;
}

/* Empty a bucket, then report its entries, which stay in the kernel's memory meanwhile. */
static void read_bucket(const struct drain *drain, struct flow_bucket *bucket)
{
	const struct flow_entry *entries[BUCKET_SLOTS];
	int n = 0;

	for (int i = 0; i < BUCKET_SLOTS; i++)
		if (bucket->tags[i])
			entries[n++] = &bucket->entries[i];
	if (!n)
		return;
	memset(bucket->tags, 0, sizeof(bucket->tags));
	drain->on_entries(drain->ctx, DRAIN_ONLY, entries, n);
}

static int read_l1(struct drain *drain)
{
	const struct store *store = drain->store;
	uint32_t end = min_u64(drain->bucket + WINDOW, store->l1_buckets);
	struct flow_bucket *buckets =
		store_map_l1(store, drain->generation, drain->cpu);

	if (!buckets)
		return -errno;
	for (; drain->bucket < end; drain->bucket++)
		read_bucket(drain, &buckets[drain->bucket]);
	store_unmap_l1(store, buckets);
	if (drain->bucket == store->l1_buckets) {
		drain->cpu++;
		drain->bucket = 0;
	}
	return 1;
}

static int finish_drain(struct drain *drain)
{
	fold_reset(drain->fold, drain->generation);
	drain->phase = DRAIN_IDLE;
	return 0;
}

static int step_l1(struct drain *drain)
{
	if (drain->cpu < drain->store->n_cpus)
		return read_l1(drain);
	fold_release(drain->fold, drain->generation,
		     0); /* nothing is added from now on */
	drain->phase = drain->n_folded >= LARGE ? DRAIN_ANNOUNCE : DRAIN_KEEP;
	return 1;
}

/* Report up to SLICE folded entries. False: there are no more. */
static bool read_folded(struct drain *drain, enum drain_reading reading)
{
	uint32_t end = min_u64(drain->next + SLICE, drain->n_folded);
	const struct flow_entry *entries[BUCKET_SLOTS];
	struct flow_entry room[BUCKET_SLOTS];
	uint32_t n;

	while (drain->next < end) {
		n = fold_read(drain->fold, drain->generation, drain->next, room,
			      entries, min_u64(BUCKET_SLOTS, end - drain->next));
		drain->on_entries(drain->ctx, reading, entries, (int)n);
		drain->next += n;
	}
	return end < drain->n_folded;
}

static int step_folded(struct drain *drain)
{
	static const enum drain_reading readings[] = {
		[DRAIN_KEEP] = DRAIN_ONLY,
		[DRAIN_ANNOUNCE] = DRAIN_FIRST,
		[DRAIN_DELIVER] = DRAIN_SECOND,
	};

	bool has_more = read_folded(drain, readings[drain->phase]);

	if (drain->phase != DRAIN_ANNOUNCE)
		fold_release(drain->fold, drain->generation, drain->next);
	if (has_more)
		return 1;
	if (drain->phase != DRAIN_ANNOUNCE)
		return finish_drain(drain);
	drain->phase = DRAIN_DELIVER;
	drain->next = 0;
	return 1;
}

static int step_drain(struct drain *drain)
{
	switch (drain->phase) {
	case DRAIN_IDLE:
		return 0;
	case DRAIN_OVERFLOW:
		return step_overflow(drain);
	case DRAIN_L1:
		return step_l1(drain);
	default:
		return step_folded(drain);
	}
}

int drain_step(struct drain *drain)
{
	int ret = step_drain(drain);

	if (ret >= 0)
		return ret;
	if (drain->phase == DRAIN_OVERFLOW)
		drain->spilled[drain->generation] = UINT64_MAX; /* read it again */
	drain->phase = DRAIN_IDLE;
	return ret;
}
