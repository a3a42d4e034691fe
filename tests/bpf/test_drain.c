// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Reading a generation: everything once, and nothing stays. */
#include "flows/drain.h"

#include "bpf/store/table.h"
#include "lib_test.h"
#include "lib_world.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

enum { LARGE = 20000, ROOM = 1 << 20 };

/* What came out: entry n of L2 has n + 1 packets, entry n of L1 n + 1 bytes. */
struct fixture {
	struct log silent;
	struct store store;
	struct drain drain;
	uint8_t kept[LARGE], announced[LARGE], delivered[LARGE];
	uint32_t n_kept, n_announced, n_delivered;
	uint64_t l1_bytes;
	bool announced_late;
};

static int on_event(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
	return 0;
}

static void keep_entry(struct fixture *f, const struct flow_entry *entry)
{
	f->n_kept++;
	if (entry->key.netns)
		f->l1_bytes += entry->tally.bytes;
	else
		f->kept[entry->tally.packets - 1]++;
}

static void deliver_entry(struct fixture *f, const struct flow_entry *entry)
{
	assert_int_equal(entry->key.src.words[0], entry->tally.packets - 1);
	assert_int_equal(entry->tally.attrs.marks,
			 (entry->tally.packets - 1) & 0xfff);
	f->n_delivered++;
	f->delivered[entry->tally.packets - 1]++;
}

static void read_entry(struct fixture *f, enum drain_reading reading,
		       const struct flow_entry *entry)
{
	if (reading == DRAIN_ONLY)
		keep_entry(f, entry);
	if (reading == DRAIN_SECOND)
		deliver_entry(f, entry);
	if (reading != DRAIN_FIRST)
		return;
	f->n_announced++;
	f->announced[entry->key.src.words[0]]++;
	f->announced_late |= f->n_delivered;
}

static void on_entries(void *ctx, enum drain_reading reading,
		       const struct flow_entry *const *entries, int n)
{
	for (int i = 0; i < n; i++)
		read_entry(ctx, reading, entries[i]);
}

static int setup(void **state)
{
	static struct fixture f;
	const struct store_options options = { .max_flows = ROOM };
	int err;

	f = (struct fixture){ 0 };
	*state = &f;
	err = store_open(&f.store, &options, &f.silent);
	drain_init(&f.drain, &f.store, on_event, on_entries, &f);
	return err;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	store_close(&f->store);
	return 0;
}

static void forget(struct fixture *f)
{
	memset(f->kept, 0, sizeof(f->kept));
	memset(f->announced, 0, sizeof(f->announced));
	memset(f->delivered, 0, sizeof(f->delivered));
	f->n_kept = f->n_announced = f->n_delivered = 0;
	f->l1_bytes = 0;
}

static const struct table *newest(const struct fixture *f, uint32_t generation)
{
	const struct tables *tables = &f->store.tables;

	return &tables->levels[generation][tables->states[generation].level];
}

/* As the programs leave it: flows 0 to n - 1, each counted as an insert. */
static void fill_l2(struct fixture *f, uint32_t generation, uint32_t n)
{
	const struct table *table = newest(f, generation);
	struct flow_bucket *buckets = tables_map(table, 0, table->n_buckets);

	assert_non_null(buckets);
	for (uint32_t i = 0; i < n; i++) {
		struct flow_bucket *bucket = &buckets[i % table->n_buckets];
		struct flow_key key = world_key(0, 1, false);
		struct flow_entry entry;
		int slot;

		key.src.words[0] = i;
		entry = world_entry(&key, i + 1, 1, 2);
		entry.tally.mark_counts = marks_spread(i & 0xfff);
		slot = bucket_claim(bucket, i % BUCKET_SLOTS);
		assert_in_range(slot, 0, BUCKET_SLOTS - 1);
		bucket->entries[slot] = entry;
		bucket->tags[slot] |= 1U << TAG_SHIFT;
	}
	tables_unmap(buckets, table->n_buckets);
	f->store.cpus[0].inserts[generation] += n;
}

/* The next drain of the generation finds room for so many. */
static void make_room(struct fixture *f, uint32_t generation, uint32_t n)
{
	f->store.tables.tuning.peak = n * 2;
	tables_fit(&f->store.tables, generation);
	assert_int_equal(tables_finish(&f->store.tables), 0);
}

static void put(struct flow_bucket *bucket, int slot,
		const struct flow_entry *entry)
{
	bucket->entries[slot] = *entry;
	bucket->tags[slot] = 1U << TAG_SHIFT;
}

/* One entry in the first and the last slot of every CPU. */
static uint64_t fill_l1(struct fixture *f, uint32_t generation)
{
	uint32_t last = f->store.l1_buckets - 1;
	struct flow_key key = world_key(1, 1, false);
	struct flow_entry entry = world_entry(&key, 1, 1, 2);
	uint64_t bytes = 0;

	for (uint32_t cpu = 0; cpu < f->store.n_cpus; cpu++) {
		struct flow_bucket *buckets =
			store_map_l1(&f->store, generation, cpu);

		assert_non_null(buckets);
		entry.tally.bytes = 2;
		put(&buckets[0], 0, &entry);
		entry.tally.bytes = 1000 * (cpu + 1);
		put(&buckets[last], BUCKET_SLOTS - 1, &entry);
		bytes += 2 + entry.tally.bytes;
		store_unmap_l1(&f->store, buckets);
	}
	return bytes;
}

/* To the end; the number of slices. */
static uint32_t drain(struct fixture *f, uint32_t generation)
{
	uint32_t slices = 1;
	int ret;

	drain_start(&f->drain, generation);
	while ((ret = drain_step(&f->drain)) > 0)
		slices++;
	assert_int_equal(ret, 0);
	assert_int_equal(drain_step(&f->drain), 0);
	return slices;
}

static void assert_each_once(const uint8_t *seen, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (seen[i] != 1)
			fail_msg("flow %u came %u times", i, seen[i]);
}

/* Every byte is zero, as the programs expect it. */
static void assert_l2_empty(const struct fixture *f, uint32_t generation)
{
	const struct table *table = newest(f, generation);
	struct flow_bucket *buckets = tables_map(table, 0, table->n_buckets);
	size_t size = table->n_buckets * sizeof(*buckets);
	const char *bytes = (const char *)buckets;

	assert_non_null(buckets);
	assert_false(bytes[0] || memcmp(bytes, bytes + 1, size - 1));
	tables_unmap(buckets, table->n_buckets);
}

static void drain_of_nothing_brings_nothing(void **state)
{
	struct fixture *f = *state;

	drain(f, 0);
	drain(f, 1);
	assert_int_equal(f->n_kept + f->n_announced + f->n_delivered, 0);
}

static void drain_empties_l1_of_all_cpus(void **state)
{
	struct fixture *f = *state;
	uint64_t bytes = fill_l1(f, 1);

	drain(f, 0);
	assert_int_equal(f->n_kept, 0); /* it is the other's */
	drain(f, 1);
	assert_int_equal(f->n_kept, 2 * f->store.n_cpus);
	assert_int_equal(f->l1_bytes, bytes);
	forget(f);
	drain(f, 1);
	assert_int_equal(f->n_kept, 0);
}

static void drain_empties_a_small_l2(void **state)
{
	static const uint32_t sizes[] = { 1, 100, 2048, 16383 };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		forget(f);
		make_room(f, i % 2, sizes[i]);
		fill_l2(f, i % 2, sizes[i]);
		drain(f, i % 2);
		assert_int_equal(f->n_kept, sizes[i]);
		assert_each_once(f->kept, sizes[i]);
		assert_int_equal(f->n_announced + f->n_delivered, 0);
		assert_l2_empty(f, i % 2);
		assert_int_equal(f->store.states[i % 2].inserts, 0);
		assert_int_equal(f->store.cpus[0].inserts[i % 2], 0);
	}
}

static void drain_reads_a_large_l2_twice(void **state)
{
	struct fixture *f = *state;
	uint64_t bytes = fill_l1(f, 0);

	make_room(f, 0, LARGE);
	fill_l2(f, 0, LARGE);
	assert_true(drain(f, 0) > 10); /* in slices */
	assert_int_equal(f->l1_bytes, bytes);
	assert_int_equal(f->n_announced, LARGE);
	assert_int_equal(f->n_delivered, LARGE);
	assert_each_once(f->announced, LARGE);
	assert_each_once(f->delivered, LARGE);
	assert_false(f->announced_late);
	assert_l2_empty(f, 0);
	forget(f);
	drain(f, 0);
	assert_int_equal(f->n_kept + f->n_delivered, 0);
}

/* What was added while flows came is read as well, and taken out. */
static void drain_reads_all_tables_of_a_generation(void **state)
{
	struct fixture *f = *state;
	struct tables *tables = &f->store.tables;
	uint64_t before = tables_bytes(tables);

	fill_l2(f, 0, 3000);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tables_grow(tables, 0), 0);
		assert_int_equal(tables_finish(tables), 0);
	}
	assert_int_equal(f->store.states[0].level, 2);
	assert_true(tables_bytes(tables) > 5 * before / 2);
	for (uint32_t level = 1; level < 3; level++) {
		const struct table *table = &tables->levels[0][level];
		struct flow_bucket *last =
			tables_map(table, table->n_buckets - TUNING_BUCKETS_UNIT,
				   TUNING_BUCKETS_UNIT);
		struct flow_key key = world_key(0, 1, false);

		assert_non_null(last);
		last[TUNING_BUCKETS_UNIT - 1].tags[15] = 7 << TAG_SHIFT;
		last[TUNING_BUCKETS_UNIT - 1].entries[15] =
			world_entry(&key, 3000 + level, 1, 2);
		tables_unmap(last, TUNING_BUCKETS_UNIT);
		f->store.cpus[0].inserts[0]++;
	}
	drain(f, 0);
	assert_int_equal(f->n_kept, 3002);
	assert_each_once(f->kept, 3002);
	/* What is not used any more goes when the kernel has got the rest in place. */
	for (int tries = 0; tables_bytes(tables) >= 2 * before; tries++) {
		assert_in_range(tries, 0, 500);
		usleep(10000);
		tables_fit(tables, 0);
		assert_int_equal(tables_finish(tables), 0);
	}
}

/* No part needs to begin at a page of the kernel. */
static void buckets_are_mapped_from_any_of_them(void **state)
{
	struct fixture *f = *state;
	const struct table *table = newest(f, 0);

	fill_l2(f, 0, 5000);
	for (uint32_t first = 0; first < table->n_buckets; first += 77) {
		uint32_t n = min_u64(100, table->n_buckets - first);
		struct flow_bucket *whole =
			tables_map(table, 0, table->n_buckets);
		struct flow_bucket *part = tables_map(table, first, n);

		assert_non_null(whole);
		assert_non_null(part);
		assert_memory_equal(part, whole + first, n * sizeof(*part));
		part->entries[3].tally.bytes++;
		assert_int_equal(whole[first].entries[3].tally.bytes,
				 part->entries[3].tally.bytes);
		tables_unmap(part, n);
		tables_unmap(whole, table->n_buckets);
	}
}

static void drain_leaves_the_other_generation_alone(void **state)
{
	struct fixture *f = *state;

	fill_l2(f, 0, 50);
	fill_l2(f, 1, 70);
	drain(f, 0);
	assert_int_equal(f->n_kept, 50);
	assert_int_equal(f->store.cpus[0].inserts[1], 70);
	forget(f);
	drain(f, 1);
	assert_int_equal(f->n_kept, 70);
	assert_each_once(f->kept, 70);
}

static void drain_wakes_up_anew_after_the_watermark(void **state)
{
	struct fixture *f = *state;

	f->store.states[0].announced = 1;
	f->store.states[1].announced = 1;
	drain(f, 0);
	assert_int_equal(f->store.states[0].announced, 0);
	assert_int_equal(f->store.states[1].announced, 1);
}

/* After a failure the rest comes with the next drain. */
static void drain_that_fails_is_made_up_for(void **state)
{
	struct rlimit limit, none;
	struct fixture *f = *state;
	int ret;

	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	fill_l2(f, 0, 5000);
	drain_start(&f->drain, 0);
	while ((ret = drain_step(&f->drain)) > 0)
		if (f->n_kept) /* no more may be mapped */
			assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	assert_int_equal(ret, -ENOMEM);
	assert_in_range(f->n_kept, 1, 4999);
	drain(f, 0);
	assert_int_equal(f->n_kept, 5000);
	assert_each_once(f->kept, 5000);
}

static void drain_may_be_given_up_at_any_step(void **state)
{
	struct fixture *f = *state;

	for (uint32_t steps = 0; steps < 12; steps++) {
		forget(f);
		make_room(f, 0, LARGE);
		fill_l2(f, 0, LARGE);
		drain_start(&f->drain, 0);
		for (uint32_t i = 0; i < steps; i++)
			assert_true(drain_step(&f->drain) > 0);
		teardown(state);
		assert_int_equal(setup(state), 0);
	}
}

#define each(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		each(drain_of_nothing_brings_nothing),
		each(drain_empties_l1_of_all_cpus),
		each(drain_empties_a_small_l2),
		each(drain_reads_a_large_l2_twice),
		each(drain_reads_all_tables_of_a_generation),
		each(buckets_are_mapped_from_any_of_them),
		each(drain_leaves_the_other_generation_alone),
		each(drain_wakes_up_anew_after_the_watermark),
		each(drain_that_fails_is_made_up_for),
		each(drain_may_be_given_up_at_any_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
