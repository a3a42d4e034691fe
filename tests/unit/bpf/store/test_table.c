// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The shared table as one CPU sees it. */
#include "host.h"
#include "lib_test.h"

#include "base/util.h"
#include "bpf/store/table.h"

#include <stdlib.h>
#include <string.h>

/* Any 64 bits, the same in every run. */
static uint64_t random64(void)
{
	return (uint64_t)mrand48() << 32 ^ (uint32_t)mrand48();
}

static struct flow_key random_key(void)
{
	struct flow_key key;
	uint64_t lanes[sizeof(key) / sizeof(uint64_t)];

	for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++)
		lanes[i] = random64();
	memcpy(&key, lanes, sizeof(key));
	return key;
}

/* Where in a set of match_tags() an entry is. */
static uint64_t bit_of(int index)
{
	return 1ULL << (index % 2 * 32 + index / 2);
}

static uint64_t set_of(uint32_t indices)
{
	uint64_t set = 0;

	for (int i = 0; i < BUCKET_SLOTS; i++)
		if (indices >> i & 1)
			set |= bit_of(i);
	return set;
}

/* ---- Tags ------------------------------------------------------------------ */

static void set_gives_its_members_in_order(void **state)
{
	(void)state;
	for (uint32_t indices = 0; indices < 1 << BUCKET_SLOTS; indices++) {
		uint64_t set = set_of(indices);

		for (int i = 0; i < BUCKET_SLOTS; i++) {
			if (!(indices >> i & 1))
				continue;
			assert_int_equal(found_first(set), i);
			set = found_without(set, i);
		}
		assert_int_equal(set, 0);
	}
}

/* Tags of which about one in four is @tag, with others' claims on them. */
static uint32_t fill_tags(struct flow_bucket *bucket, uint32_t tag)
{
	uint32_t indices = 0;

	for (int i = 0; i < BUCKET_SLOTS; i++) {
		bool is_match = random64() % 4 == 0;
		uint32_t other = tag_of(random64());

		indices |= (is_match || other == tag) << i;
		bucket->tags[i] = (is_match ? tag : other) << TAG_SHIFT |
				  random64() % (1 << TAG_SHIFT);
	}
	return indices;
}

static void match_tag_finds_all_and_nothing_else(void **state)
{
	(void)state;
	for (int round = 0; round < 100000; round++) {
		uint32_t tag = tag_of(random64());
		struct flow_bucket bucket;
		uint32_t indices = fill_tags(&bucket, tag);

		assert_int_equal(match_tag(&bucket, tag), set_of(indices));
	}
}

/* Neighbours of a match that differ in few bits, where a borrow may reach. */
static void match_tag_tells_tags_that_differ_little(void **state)
{
	const uint32_t tag = 0x800001;

	(void)state;
	for (int bit = 1; bit < 32 - TAG_SHIFT; bit++) {
		for (uint32_t indices = 0; indices < 1 << BUCKET_SLOTS;
		     indices += 5) {
			struct flow_bucket bucket;

			for (int i = 0; i < BUCKET_SLOTS; i++)
				bucket.tags[i] =
					(indices >> i & 1 ? tag : tag ^ 1 << bit)
						<< TAG_SHIFT |
					1;
			assert_int_equal(match_tag(&bucket, tag),
					 set_of(indices));
		}
	}
}

static void tag_is_odd_and_fits(void **state)
{
	(void)state;
	assert_true(tag_of(0) & 1);
	for (int round = 0; round < 100000; round++) {
		uint32_t tag = tag_of(random64());

		assert_true(tag & 1);
		assert_int_equal(tag >> (32 - TAG_SHIFT), 0);
	}
}

/*
 * Every free entry is found, the first rightly; one that is claimed may be
 * taken for free behind a free one, never alone.
 */
static void match_free_finds_all(void **state)
{
	static const uint32_t used[] = { 1, 2, 255, 256, 1 << 31, UINT32_MAX };

	(void)state;
	for (int round = 0; round < 100000; round++) {
		uint32_t indices = random64() & random64() & 0xffff;
		struct flow_bucket bucket;
		uint64_t found, wrong;

		for (int i = 0; i < BUCKET_SLOTS; i++)
			bucket.tags[i] =
				indices >> i & 1 ? 0 : used[random64() % 6];
		found = match_free(&bucket);
		wrong = found & ~set_of(indices);
		assert_int_equal(found & ~wrong, set_of(indices));
		assert_int_equal(wrong & ~(found << 32), 0);
		for (int i = 1; i < BUCKET_SLOTS; i += 2)
			if (wrong & bit_of(i))
				assert_int_equal(bucket.tags[i], 1);
	}
}

/* ---- Buckets --------------------------------------------------------------- */

static struct flow_entry *insert(struct flow_bucket *bucket,
				 const struct flow_key *key, uint32_t tag)
{
	struct flow_entry entry = { .key = *key };

	return bucket_insert(bucket, &entry, tag);
}

/* At home while that is free, then wherever there is room. */
static void bucket_finds_each_of_sixteen(void **state)
{
	(void)state;
	for (int round = 0; round < 1000; round++) {
		struct flow_bucket bucket = {};
		struct flow_entry *entries[BUCKET_SLOTS];
		struct flow_key keys[BUCKET_SLOTS + 1];
		uint32_t tags[BUCKET_SLOTS + 1];

		for (int i = 0; i <= BUCKET_SLOTS; i++) {
			keys[i] = random_key();
			tags[i] = tag_of(hash_key(&keys[i], &host_secret));
			assert_null(bucket_find(&bucket, &keys[i], tags[i]));
			if (i == BUCKET_SLOTS)
				break;
			bool is_home_free = !bucket.tags[home_of(tags[i])];

			entries[i] = insert(&bucket, &keys[i], tags[i]);
			assert_non_null(entries[i]);
			if (is_home_free)
				assert_ptr_equal(
					entries[i],
					&bucket.entries[home_of(tags[i])]);
		}
		assert_null(insert(&bucket, &keys[16], tags[16]));
		for (int i = 0; i < BUCKET_SLOTS; i++) {
			assert_int_equal(bucket.tags[entries[i] - bucket.entries],
					 tags[i] << TAG_SHIFT | 1);
			assert_ptr_equal(bucket_find(&bucket, &keys[i], tags[i]),
					 entries[i]);
		}
	}
}

/* What a lane of the key has, another key with the same tag has not. */
static void bucket_compares_all_of_the_key(void **state)
{
	struct flow_bucket bucket = {};
	struct flow_key key = random_key(), other;

	(void)state;
	assert_non_null(insert(&bucket, &key, 77));
	for (size_t bit = 0; bit < 8 * sizeof(key); bit++) {
		other = key;
		((uint8_t *)&other)[bit / 8] ^= 1 << bit % 8;
		assert_null(bucket_find(&bucket, &other, 77));
	}
	assert_null(bucket_find(&bucket, &key, 79));
}

/* Two flows of a bucket with one tag are rare, three are as good as never. */
static void bucket_finds_the_second_of_a_tag_but_no_third(void **state)
{
	struct flow_bucket bucket = {};
	struct flow_key keys[3] = { random_key(), random_key(), random_key() };

	(void)state;
	bucket.tags[home_of(77)] = 1; /* somebody else's */
	for (int i = 0; i < 3; i++)
		assert_non_null(insert(&bucket, &keys[i], 77));
	assert_ptr_equal(bucket_find(&bucket, &keys[0], 77), &bucket.entries[0]);
	assert_ptr_equal(bucket_find(&bucket, &keys[1], 77), &bucket.entries[1]);
	assert_null(bucket_find(&bucket, &keys[2], 77));
}

/* A claimed entry is neither found nor taken, and comes back when it is free. */
static void bucket_leaves_claims_alone(void **state)
{
	struct flow_bucket bucket = {};
	struct flow_key key = random_key();

	(void)state;
	for (int i = 0; i < BUCKET_SLOTS; i++)
		bucket.tags[i] = 1;
	assert_null(insert(&bucket, &key, 77));
	for (int i = 0; i < BUCKET_SLOTS; i++)
		assert_int_equal(bucket.tags[i], 1);
	bucket.tags[9] = 0;
	assert_ptr_equal(insert(&bucket, &key, 77), &bucket.entries[9]);
	bucket.tags[9] += 3; /* three CPUs that had found it free */
	assert_ptr_equal(bucket_find(&bucket, &key, 77), &bucket.entries[9]);
}

static void inserted_entry_has_no_counts_yet(void **state)
{
	struct flow_bucket bucket = {};
	struct flow_entry entry, *shared;

	(void)state;
	memset(&entry, 0x55, sizeof(entry));
	shared = bucket_insert(&bucket, &entry, 1);
	assert_non_null(shared);
	shared_finish(&shared->tally);
	assert_int_equal(shared->tally.packets, 0);
	assert_int_equal(shared->tally.bytes, 0);
	assert_int_equal(shared->tally.l2_bytes, 0);
	assert_int_equal(shared->tally.attrs.marks, 0);
	entry.tally.packets = entry.tally.bytes = entry.tally.l2_bytes = 0;
	entry.tally.attrs.marks = 0;
	entry.tally.attrs.flow_label &= LABEL_MASK;
	assert_memory_equal(shared, &entry, sizeof(entry));
}

/* With @n entries, from the first on. */
static struct flow_bucket bucket_with(int n)
{
	struct flow_bucket bucket = {};

	for (int i = 0; i < n; i++)
		bucket.tags[i] = tag_of(random64()) << TAG_SHIFT | 1;
	return bucket;
}

static void second_bucket_is_for_when_the_first_is_fuller(void **state)
{
	(void)state;
	for (int first = 0; first <= BUCKET_SLOTS; first++) {
		for (int second = 0; second <= BUCKET_SLOTS; second++) {
			struct flow_bucket a = bucket_with(first);
			struct flow_bucket b = bucket_with(second);
			bool is_wanted = first > BUCKET_SLOTS / 2 &&
					 second < first;

			if (first == BUCKET_SLOTS && second == BUCKET_SLOTS)
				continue; /* there is no room in either */
			if (prefer_second(&a, &b) != is_wanted)
				fail_msg("%d and %d entries", first, second);
		}
	}
}

/* ---- The table ------------------------------------------------------------- */

/* Each number is the outcome of as many hashes as any other, but for one. */
static void scale_covers_all_numbers_evenly(void **state)
{
	static const uint32_t numbers[] = { 1,	    2,	     64,
					    1024,   1088,    7872,
					    335552, 1 << 30, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t n = numbers[i], step = n / 1000 + 1;

		assert_int_equal(scale(0, n), 0);
		assert_int_equal(scale(UINT32_MAX, n), n - 1);
		for (uint64_t k = 1; k < n; k += step) {
			uint64_t least = ((k << 32) + n - 1) / n;

			assert_int_equal(scale(least, n), k);
			assert_int_equal(scale(least - 1, n), k - 1);
		}
	}
}

enum { TABLE_BUCKETS = 1024, TABLE_SLOTS = TABLE_BUCKETS * BUCKET_SLOTS };

/* As in store.h. False: there is no room. */
static bool enter(struct flow_bucket *table, const struct flow_key *key)
{
	uint64_t hash = hash_key(key, &host_secret);
	struct flow_bucket *first = &table[scale(hash >> 32, TABLE_BUCKETS)];
	struct flow_bucket *second = &table[scale(hash, TABLE_BUCKETS)];

	return insert(prefer_second(first, second) ? second : first, key,
		      tag_of(hash));
}

/* Flows of @n that a table has no room for. */
static unsigned int overflow_of(struct flow_bucket *table, uint32_t n)
{
	unsigned int refused = 0;

	memset(table, 0, TABLE_BUCKETS * sizeof(*table));
	for (uint32_t i = 0; i < n; i++) {
		struct flow_key key = random_key();

		refused += !enter(table, &key);
	}
	return refused;
}

static void few_flows_find_no_room_before_the_table_is_nearly_full(void **state)
{
	struct flow_bucket *table = calloc(TABLE_BUCKETS, sizeof(*table));
	const uint32_t flows = TABLE_SLOTS / 100 * 85;
	const unsigned int rounds = 32;
	unsigned int refused = 0;

	(void)state;
	assert_non_null(table);
	for (unsigned int i = 0; i < rounds; i++)
		refused += overflow_of(table, flows);
	free(table);
	print_message("%u of %u flows found no room\n", refused, rounds * flows);
	assert_true(refused < rounds * flows / 10000);
}

/* ---- Adding ---------------------------------------------------------------- */

static struct flow_tally addition(uint64_t packets, uint64_t first_ns,
				  uint64_t last_ns, uint8_t ttl)
{
	return (struct flow_tally){
		.packets = packets,
		.bytes = packets * 100,
		.l2_bytes = packets * 114,
		.first_ns = first_ns,
		.last_ns = last_ns,
		.attrs.ttl_min = ttl,
		.attrs.ttl_max = ttl,
	};
}

static void sums_extremes_and_the_latest_are_kept(void **state)
{
	struct flow_tally tally = { .first_ns = 500,
				    .last_ns = 500,
				    .attrs.ttl_min = 64,
				    .attrs.ttl_max = 64 };
	struct flow_tally parts[] = {
		addition(1, 500, 500, 64),
		addition(20, 400, 450, 255),
		addition(300, 510, 800, 1),
		addition(4000, 600, 900, 64),
	};

	(void)state;
	for (int i = 0; i < 4; i++) {
		parts[i].attrs.dscp = i;
		parts[i].attrs.marks = 0x11001 << i;
		shared_add(&tally, &parts[i]);
	}
	assert_int_equal(tally.packets, 4321);
	assert_int_equal(tally.bytes, 432100);
	assert_int_equal(tally.l2_bytes, 4321 * 114);
	assert_int_equal(tally.first_ns, 400);
	assert_int_equal(tally.last_ns, 900);
	assert_int_equal(tally.attrs.ttl_min, 1);
	assert_int_equal(tally.attrs.ttl_max, 255);
	assert_int_equal(tally.attrs.dscp, 3);
	assert_int_equal(marks_gather(tally.mark_counts), 0xff00f);
}

static void the_flow_label_is_that_of_the_first(void **state)
{
	struct flow_bucket bucket = { 0 };
	struct flow_entry entry = { .tally = addition(1, 1, 1, 1) }, *shared;
	const uint32_t labels[] = { LABEL_MASK, 0, 5 };

	(void)state;
	entry.tally.attrs.flow_label = labels[0];
	shared = bucket_insert(&bucket, &entry, 1);
	assert_non_null(shared);
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
		entry.tally.attrs.flow_label = labels[i];
		entry.tally.attrs.marks = 1 << i;
		shared_add(&shared->tally, &entry.tally);
	}
	shared_finish(&shared->tally);
	assert_int_equal(shared->tally.packets, ARRAY_SIZE(labels));
	assert_int_equal(shared->tally.attrs.flow_label, labels[0]);
	assert_int_equal(shared->tally.attrs.marks, 7);
}

static void marks_are_counted_once(void **state)
{
	struct flow_tally part = addition(1, 1, 1, 1);
	struct flow_tally tally = { 0 };

	(void)state;
	part.attrs.marks = (1 << FLOW_MARKS) - 1;
	for (int i = 0; i < 100; i++)
		shared_add(&tally, &part);
	assert_int_equal(tally.mark_counts, marks_spread(part.attrs.marks));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_gives_its_members_in_order),
		cmocka_unit_test(match_tag_finds_all_and_nothing_else),
		cmocka_unit_test(match_tag_tells_tags_that_differ_little),
		cmocka_unit_test(tag_is_odd_and_fits),
		cmocka_unit_test(match_free_finds_all),
		cmocka_unit_test(bucket_finds_each_of_sixteen),
		cmocka_unit_test(bucket_compares_all_of_the_key),
		cmocka_unit_test(bucket_finds_the_second_of_a_tag_but_no_third),
		cmocka_unit_test(bucket_leaves_claims_alone),
		cmocka_unit_test(inserted_entry_has_no_counts_yet),
		cmocka_unit_test(second_bucket_is_for_when_the_first_is_fuller),
		cmocka_unit_test(scale_covers_all_numbers_evenly),
		cmocka_unit_test(
			few_flows_find_no_room_before_the_table_is_nearly_full),
		cmocka_unit_test(sums_extremes_and_the_latest_are_kept),
		cmocka_unit_test(the_flow_label_is_that_of_the_first),
		cmocka_unit_test(marks_are_counted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
