// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "drain.h"

#include "bpf/store/table.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>

enum {
	WINDOW = TUNING_BUCKETS_UNIT, /* buckets per slice: 1024 entries */
	LARGE = 16384, /* L2 entries from which a second reading pays */
};

void drain_init(struct drain *drain, struct store *store,
		drain_event_fn *on_event, drain_entries_fn *on_entries, void *ctx)
{
	*drain = (struct drain){
		.store = store,
		.on_event = on_event,
		.on_entries = on_entries,
		.ctx = ctx,
	};
}

void drain_start(struct drain *drain, uint32_t generation)
{
	drain->phase = DRAIN_L1;
	drain->generation = generation;
	drain->cpu = 0;
	drain->bucket = 0;
	drain->inserts = store_take_inserts(drain->store, generation);
	tuning_note(&drain->store->tables.tuning, drain->inserts);
}

int drain_events(struct drain *drain)
{
	return store_read_events(drain->store, drain->on_event, drain->ctx);
}

/* Report a bucket's entries; unless they are only announced, leave it empty. */
static void read_bucket(const struct drain *drain, struct flow_bucket *bucket)
{
	static const enum drain_reading readings[] = {
		[DRAIN_L2_ANNOUNCE] = DRAIN_FIRST,
		[DRAIN_L2_DELIVER] = DRAIN_SECOND,
	};
	const enum drain_reading reading = readings[drain->phase];
	const struct flow_entry *entries[BUCKET_SLOTS];
	int n = 0;

	for (int i = 0; i < BUCKET_SLOTS; i++) {
		if (!bucket->tags[i])
			continue;
		if (reading != DRAIN_FIRST && drain->phase != DRAIN_L1)
			shared_finish(&bucket->entries[i].tally);
		entries[n++] = &bucket->entries[i];
	}
	if (n)
		drain->on_entries(drain->ctx, reading, entries, n);
	for (int i = 0; i < BUCKET_SLOTS && reading != DRAIN_FIRST; i++) {
		if (!bucket->tags[i])
			continue;
		memset(&bucket->entries[i], 0, sizeof(bucket->entries[i]));
		bucket->tags[i] = 0;
	}
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
	return 0;
}

static void start_l2(struct drain *drain)
{
	drain->phase = drain->inserts >= LARGE ? DRAIN_L2_ANNOUNCE :
						 DRAIN_L2_KEEP;
	drain->level = 0;
	drain->bucket = 0;
}

static int finish(struct drain *drain)
{
	drain->phase = DRAIN_IDLE;
	tables_rest(&drain->store->tables, drain->generation);
	return 0;
}

static int step_l1(struct drain *drain)
{
	int err = drain_events(drain);

	if (err)
		return err;
	if (drain->cpu < drain->store->n_cpus)
		return read_l1(drain) ?: 1;
	if (!drain->inserts)
		return finish(drain);
	start_l2(drain);
	return 1;
}

static int read_window(struct drain *drain, const struct table *table)
{
	uint32_t n = min_u64(WINDOW, table->n_buckets - drain->bucket);
	struct flow_bucket *buckets = tables_map(table, drain->bucket, n);

	if (!buckets)
		return -errno;
	for (uint32_t i = 0; i < n; i++)
		read_bucket(drain, &buckets[i]);
	tables_unmap(buckets, n);
	drain->bucket += n;
	return 0;
}

/* The next table that has something unread; NULL: that was the last. */
static const struct table *next_table(struct drain *drain)
{
	const struct tables *tables = &drain->store->tables;

	for (; drain->level < TABLE_LEVELS; drain->level++) {
		const struct table *table =
			&tables->levels[drain->generation][drain->level];

		if (drain->bucket < table->n_buckets)
			return table;
		drain->bucket = 0;
	}
	return NULL;
}

static int step_l2(struct drain *drain)
{
	const struct table *table = next_table(drain);

	if (table)
		return read_window(drain, table) ?: 1;
	if (drain->phase != DRAIN_L2_ANNOUNCE)
		return finish(drain);
	drain->phase = DRAIN_L2_DELIVER;
	drain->level = 0;
	drain->bucket = 0;
	return 1;
}

static int step(struct drain *drain)
{
	switch (drain->phase) {
	case DRAIN_IDLE:
		return 0;
	case DRAIN_L1:
		return step_l1(drain);
	default:
		return step_l2(drain);
	}
}

int drain_step(struct drain *drain)
{
	int ret = step(drain);

	if (ret < 0) {
		/* Some of them are left. */
		drain->store->cpus[0].inserts[drain->generation] +=
			drain->inserts;
		drain->phase = DRAIN_IDLE;
	}
	return ret;
}
