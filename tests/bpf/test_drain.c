// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Reading a generation: everything once, and nothing stays. */
#include "flows/pipeline.h"

#include "lib_test.h"
#include "lib_world.h"

#include <bpf/bpf.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { LARGE = 20000, ROOM = 1 << 20 };

/* What came out: folded entry n has n + 1 packets, entry n of L1 n + 1 bytes. */
struct fixture {
	struct log silent;
	struct store store;
	struct fold fold;
	struct drain drain;
	uint8_t kept[LARGE], announced[LARGE], delivered[LARGE];
	uint32_t n_kept, n_announced, n_delivered;
	uint64_t l1_bytes;
	bool announced_late;
	uint32_t kill_at; /* the process, once so many were kept; 0: it lives */
};

static void keep_entry(struct fixture *f, const struct flow_entry *entry)
{
	f->n_kept++;
	if (entry->key.netns)
		f->l1_bytes += entry->tally.bytes;
	else
		f->kept[entry->tally.packets - 1]++;
	if (f->n_kept == f->kill_at)
		raise(SIGKILL);
}

static void deliver_entry(struct fixture *f, const struct flow_entry *entry)
{
	assert_int_equal(entry->key.src.words[3], entry->tally.packets - 1);
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
	f->announced[entry->key.src.words[3]]++;
	f->announced_late |= f->n_delivered;
}

static void on_entries(void *ctx, enum drain_reading reading,
		       const struct flow_entry *const *entries, int n)
{
	for (int i = 0; i < n; i++)
		read_entry(ctx, reading, entries[i]);
}

static void begin(struct fixture *f)
{
	static const struct netobs_opts opts = { .max_flows = ROOM };
	const struct store_options options = { .opts = &opts };
	int err;

	err = store_open(&f->store, &options, &f->silent);
	fold_init(&f->fold, &f->store.secret, ROOM, 0);
	drain_init(&f->drain, &f->store, &f->fold, on_entries, f);
	assert_int_equal(err, 0);
}

static void end(struct fixture *f)
{
	fold_done(&f->fold);
	store_close(&f->store);
}

TEST_FIXTURE(struct fixture, begin, end)

static void forget(struct fixture *f)
{
	memset(f->kept, 0, sizeof(f->kept));
	memset(f->announced, 0, sizeof(f->announced));
	memset(f->delivered, 0, sizeof(f->delivered));
	f->n_kept = f->n_announced = f->n_delivered = 0;
	f->l1_bytes = 0;
}

static struct flow_entry numbered(uint32_t i)
{
	struct flow_key key = world_key(0, 1, false);

	key.src.words[3] = i;
	return world_entry(&key, i + 1, 1, 2);
}

/* Flows @first to @end - 1, as they come from logs. */
static void fill_fold(struct fixture *f, uint32_t generation, uint32_t first,
		      uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		struct flow_entry entry = numbered(i);

		assert_int_equal(fold_add_entry(&f->fold, generation, &entry), 0);
	}
}

/* The same, as programs leave them while a log is full. */
static void fill_overflow(struct fixture *f, uint32_t generation,
			  uint32_t first, uint32_t end)
{
	int fd = f->store.overflow.fds[generation];

	for (uint32_t i = first; i < end; i++) {
		struct overflow_page page = { .n = 1, .entries = { numbered(i) } };
		struct overflow_key key = { .page = i };

		assert_int_equal(
			bpf_map_update_elem(fd, &key, &page, BPF_NOEXIST), 0);
		f->store.cpus[0].counters[generation].spilled.packets += i + 1;
	}
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
		slices += ret > 0;
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

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

CASE(drain_empties_l1_of_all_cpus)
{
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

/* Half of them folded before, half in the overflow table. */
CASE(drain_reads_few_entries_once)
{
	static const uint32_t sizes[] = { 1, 100, 2048, 16383 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t n = sizes[i];

		forget(f);
		fill_fold(f, i % 2, 0, n / 2);
		fill_overflow(f, i % 2, n / 2, n);
		drain(f, i % 2);
		assert_int_equal(f->n_kept, n);
		assert_each_once(f->kept, n);
		assert_int_equal(f->n_announced + f->n_delivered, 0);
		assert_int_equal(fold_count(&f->fold, i % 2), 0);
	}
}

CASE(drain_reads_many_entries_twice)
{
	uint64_t bytes = fill_l1(f, 0);

	fill_fold(f, 0, 0, LARGE - 5000);
	fill_overflow(f, 0, LARGE - 5000, LARGE);
	assert_true(drain(f, 0) > 10); /* in slices */
	assert_int_equal(f->l1_bytes, bytes);
	assert_int_equal(f->n_announced, LARGE);
	assert_int_equal(f->n_delivered, LARGE);
	assert_each_once(f->announced, LARGE);
	assert_each_once(f->delivered, LARGE);
	assert_false(f->announced_late);
	forget(f);
	drain(f, 0);
	assert_int_equal(f->n_kept + f->n_delivered, 0);
}

/* An entry of the overflow table may be of a flow that was folded. */
CASE(overflow_is_added_to_folded_entries)
{
	fill_fold(f, 0, 0, 1);
	fill_overflow(f, 0, 0, 1);
	drain(f, 0);
	assert_int_equal(f->n_kept, 1);
	assert_int_equal(f->kept[1], 1); /* of 1 + 1 packets */
}

CASE(entries_beyond_the_limit_are_reported_all_the_same)
{
	fold_done(&f->fold);
	fold_init(&f->fold, &f->store.secret, 100, 0);
	fill_fold(f, 0, 0, 100);
	fill_overflow(f, 0, 100, 3000);
	drain(f, 0);
	assert_int_equal(f->n_kept, 3000);
	assert_each_once(f->kept, 3000);
}

/* After a failure the rest comes with the next drain. */
CASE(drain_that_fails_is_made_up_for)
{
	struct rlimit limit, none;
	uint64_t bytes = fill_l1(f, 0);
	int ret;

	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	fill_fold(f, 0, 0, 5000);
	drain_start(&f->drain, 0);
	while ((ret = drain_step(&f->drain)) > 0)
		if (f->n_kept) /* no more may be mapped */
			assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	assert_int_equal(ret, -ENOMEM);
	assert_in_range(f->n_kept, 1, 2 * f->store.n_cpus - 1);
	drain(f, 0);
	assert_int_equal(f->n_kept, 5000 + 2 * f->store.n_cpus);
	assert_int_equal(f->l1_bytes, bytes);
	assert_each_once(f->kept, 5000);
}

/* In the middle of any report: the next process gets the others, and these alone. */
CASE(killed_drain_leaves_no_entry_that_it_reported)
{
	const uint32_t n = 2 * f->store.n_cpus;

	for (uint32_t kill_at = 1; kill_at <= n; kill_at++) {
		int status;
		pid_t child;

		fill_l1(f, 0);
		child = fork();
		if (!child) {
			f->kill_at = kill_at;
			drain(f, 0);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		forget(f);
		drain(f, 0);
		assert_int_equal(f->n_kept, n - kill_at);
		forget(f);
	}
}
