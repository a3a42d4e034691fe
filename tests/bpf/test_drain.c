// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Reading a generation, whatever fails or ends the process; bpf.pipeline reads those of all sizes. */
#include "flows/pipeline.h"

#include "lib_test.h"
#include "lib_world.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { ROOM = 1 << 20 };

struct fixture {
	struct log silent;
	struct store store;
	struct fold fold;
	struct drain drain;
	uint32_t n;
	uint64_t bytes;
	uint32_t kill_at; /* the process, once so many were reported; 0: it lives */
};

static void on_entries(void *ctx, enum drain_reading reading,
		       const struct flow_entry *const *entries, int n)
{
	struct fixture *f = ctx;

	assert_int_equal(reading, DRAIN_ONLY);
	for (int i = 0; i < n; i++) {
		f->n++;
		f->bytes += entries[i]->tally.bytes;
		if (f->n == f->kill_at)
			raise(SIGKILL);
	}
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

/* @return how many entries it reports */
static uint32_t drain(struct fixture *f, uint32_t generation)
{
	int ret;

	f->n = 0;
	f->bytes = 0;
	drain_start(&f->drain, generation);
	while ((ret = drain_step(&f->drain)) > 0)
		;
	assert_int_equal(ret, 0);
	assert_int_equal(drain_step(&f->drain), 0);
	return f->n;
}

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

CASE(drain_empties_l1_of_all_cpus)
{
	uint64_t bytes = fill_l1(f, 1);

	assert_int_equal(drain(f, 0), 0); /* it is the other's */
	assert_int_equal(drain(f, 1), 2 * f->store.n_cpus);
	assert_int_equal(f->bytes, bytes);
	assert_int_equal(drain(f, 1), 0);
}

/* Each has a packet. */
static void fill_fold(struct fixture *f, uint32_t generation, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct flow_key key = world_key(0, 1, false);
		struct flow_entry entry;

		key.src.words[3] = i;
		entry = world_entry(&key, 1, 1, 2);
		assert_int_equal(fold_add_entry(&f->fold, generation, &entry), 0);
	}
}

/* After a failure the rest comes with the next drain. */
CASE(drain_that_fails_is_made_up_for)
{
	enum { FOLDED = 5000 };
	struct rlimit limit, none;
	uint64_t bytes = fill_l1(f, 0);
	uint32_t n;
	int ret;

	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	fill_fold(f, 0, FOLDED);
	drain_start(&f->drain, 0);
	while ((ret = drain_step(&f->drain)) > 0)
		if (f->n) /* no more may be mapped */
			assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	assert_int_equal(ret, -ENOMEM);
	n = f->n;
	assert_in_range(n, 1, 2 * f->store.n_cpus - 1);
	bytes -= f->bytes;
	assert_int_equal(n + drain(f, 0), FOLDED + 2 * f->store.n_cpus);
	assert_int_equal(f->bytes, bytes + FOLDED * WORLD_BYTES);
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
		assert_int_equal(drain(f, 0), n - kill_at);
	}
}
