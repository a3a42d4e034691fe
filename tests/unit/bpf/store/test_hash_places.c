// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Where a flow is in L1. */
#include "host.h"
#include "lib_test.h"

#include "bpf/store/hash.h"

/* Any 64 bits, the same in every run. */
static uint64_t random64(void)
{
	return (uint64_t)mrand48() << 32 ^ (uint32_t)mrand48();
}

TEST(tag_is_odd_and_fits)
{
	assert_true(tag_of(0) & 1);
	for (int round = 0; round < 100000; round++) {
		uint32_t tag = tag_of(random64());

		assert_true(tag & 1);
		assert_int_equal(tag >> (32 - TAG_SHIFT), 0);
	}
}

/* Both places of a flow are in its bucket. */
TEST(ways_are_neighbours)
{
	for (int round = 0; round < 100000; round++) {
		uint32_t way = l1_way(random64());

		assert_in_range(way, 0, BUCKET_SLOTS - 2);
		assert_int_equal(way % 2, 0);
	}
}

TEST(credit_is_no_part_of_a_tag)
{
	struct flow_bucket bucket = { 0 };
	uint32_t tag = tag_of(random64());

	for (uint32_t credit = 0; credit < 1 << TAG_SHIFT; credit++) {
		bucket.tags[5] = tag << TAG_SHIFT | credit;
		assert_true(has_tag(&bucket, 5, tag));
		assert_false(has_tag(&bucket, 5, tag ^ 2));
		assert_false(has_tag(&bucket, 4, tag));
	}
}

TEST(all_of_a_key_is_compared)
{
	struct flow_entry entry = { 0 };
	uint64_t lanes[sizeof(entry.key) / sizeof(uint64_t)];

	for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++)
		lanes[i] = random64();
	memcpy(&entry.key, lanes, sizeof(entry.key));
	for (size_t bit = 0; bit < 8 * sizeof(entry.key); bit++) {
		struct flow_key other = entry.key;

		assert_true(has_key(&entry, &other));
		((uint8_t *)&other)[bit / 8] ^= 1 << bit % 8;
		assert_false(has_key(&entry, &other));
	}
}

/* Each number is the outcome of as many hashes as any other, but for one. */
TEST(scale_covers_all_numbers_evenly)
{
	static const uint32_t numbers[] = { 1,	    2,	     64,
					    1024,   1088,    7872,
					    335552, 1 << 30, UINT32_MAX };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t n = numbers[i], step = n / 1000 + 1;

		assert_int_equal(scale_hash(0, n), 0);
		assert_int_equal(scale_hash(UINT32_MAX, n), n - 1);
		for (uint64_t k = 1; k < n; k += step) {
			uint64_t least = ((k << 32) + n - 1) / n;

			assert_int_equal(scale_hash(least, n), k);
			assert_int_equal(scale_hash(least - 1, n), k - 1);
		}
	}
}
