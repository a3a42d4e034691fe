// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Random entries: their short forms say the same, or there are none. */
#include "flows/short_entry.h"
#include "lib_seed.h"
#include "lib_test.h"
#include "bpf/store/tally.h"

enum { ENTRIES = 200000 };

static uint64_t random_bits(int bits)
{
	uint64_t all = test_random();

	return bits ? all >> (64 - bits) : 0;
}

/* Mostly within the range of the short form, and of each size up to @most bits. */
static uint64_t random_size(int most)
{
	return random_bits(test_below(most + 1));
}

static bool happens_to_one_in(int n)
{
	return test_below(n) == 0;
}

static struct flow_key random_key(void)
{
	struct flow_key key = {
		.src.words = { 0, 0, 0xffff0000, (uint32_t)random_bits(32) },
		.dst.words = { 0, 0, 0xffff0000, (uint32_t)random_bits(32) },
		.ifindex = (uint32_t)random_bits(32),
		.src_port = (uint16_t)random_bits(16),
		.dst_port = (uint16_t)random_bits(16),
		.vlan = (uint16_t)random_bits(16), /* with bits of the rate */
		.netns = (uint16_t)random_bits(16),
		.proto = (uint8_t)random_bits(8),
		.flags = (uint8_t)random_bits(4),
	};

	/* One value that the short form cannot represent. */
	if (happens_to_one_in(8))
		switch (test_below(8)) {
		case 0:
			key.src.words[test_below(3)] = (uint32_t)random_bits(32);
			break;
		case 1:
			key.dst.words[test_below(3)] = (uint32_t)random_bits(32);
			break;
		case 2:
			key.outer_vlan = (uint16_t)random_bits(13);
			break;
		case 3:
			key.tunnel = (uint8_t)test_below(TUNNEL_MAX);
			break;
		case 4:
			key.vni = (uint32_t)random_bits(32);
			break;
		case 5:
			key.outer_hash = (uint32_t)random_bits(32);
			break;
		case 6:
			key.rate_high = 1;
			break;
		}
	return key;
}

static struct flow_tally random_tally(void)
{
	uint64_t bytes = random_size(33), first_ns = random_bits(62);
	struct flow_tally tally = {
		.packets = random_size(33),
		.bytes = bytes,
		.l2_bytes = happens_to_one_in(8) ? random_size(34) :
						   bytes + random_size(25),
		.first_ns = first_ns,
		.last_ns = happens_to_one_in(50) ? random_bits(62) :
						   first_ns + random_size(41),
		.attrs = { .marks = (uint32_t)random_size(20),
			   .flow_label = happens_to_one_in(8),
			   .dscp = (uint8_t)random_size(6),
			   .ttl_min = (uint8_t)random_bits(8),
			   .ttl_max = (uint8_t)random_bits(8),
			   .has_mac = (uint8_t)test_below(2) },
	};

	for (size_t i = 0; i < sizeof(tally.macs); i++)
		tally.macs[i] = (uint8_t)random_bits(8);
	if (happens_to_one_in(50))
		tally.attrs.marks = (uint32_t)random_bits(32);
	if (happens_to_one_in(50))
		tally.attrs.dscp = (uint8_t)random_bits(8);
	return tally;
}

static void assert_says(const struct short_entry *entry,
			const struct flow_entry *want)
{
	struct flow_entry got;

	memset(&got, 0xaa, sizeof(got));
	short_entry_read(entry, &got);
	assert_memory_equal(&got, want, sizeof(got));
}

TEST(what_is_written_is_read)
{
	int written = 0;

	for (int i = 0; i < ENTRIES; i++) {
		struct flow_entry want = { .key = random_key(),
					   .tally = random_tally() };
		struct short_entry entry, before;
		struct short_key key = { 0 };

		if (happens_to_one_in(2))
			want.hint = random_bits(64);
		memset(&entry, 0xaa, sizeof(entry));
		before = entry;
		if (!short_entry_write(&entry, &want)) {
			assert_memory_equal(&entry, &before, sizeof(entry));
			continue;
		}
		written++;
		assert_int_equal(want.key.tunnel, TUNNEL_NONE);
		want.hint = 0; /* it means something in L1 alone */
		assert_says(&entry, &want);
		assert_true(short_key_make(&want.key, &key));
		assert_true(short_entry_has(&entry, &key));
	}
	/* Neither all nor none of them. */
	assert_in_range(written, ENTRIES / 4, ENTRIES - ENTRIES / 4);
}

TEST(sum_is_exact_or_refused)
{
	int added = 0;

	for (int i = 0; i < ENTRIES; i++) {
		struct flow_tally tally = random_tally();
		struct flow_entry want = { .key = random_key(),
					   .tally = random_tally() };
		struct short_entry entry, sum;

		if (!short_entry_write(&entry, &want))
			continue;
		if (test_below(2))
			tally.first_ns = tally.last_ns = want.tally.last_ns + 1;
		if (!short_entry_add(&entry, &tally)) {
			assert_says(&entry, &want);
			tally_add(&want.tally, &tally);
			assert_false(short_entry_write(&sum, &want));
			continue;
		}
		added++;
		tally_add(&want.tally, &tally);
		assert_says(&entry, &want);
	}
	assert_in_range(added, ENTRIES / 8, ENTRIES);
}

/* Each bit of a key distinguishes it, or leaves it without a short form. */
TEST(keys_that_differ_are_distinguished)
{
	for (int i = 0; i < ENTRIES / 100; i++) {
		struct flow_entry entry = { .tally.packets = 1 };
		struct short_entry as_short;

		entry.key = random_key();
		if (!short_entry_write(&as_short, &entry))
			continue;
		for (size_t bit = 0; bit < 8 * sizeof(entry.key); bit++) {
			struct flow_key other = entry.key;
			struct short_key key = { 0 };

			((uint8_t *)&other)[bit / 8] ^= (uint8_t)(1U << bit % 8);
			assert_false(short_key_make(&other, &key) &&
				     short_entry_has(&as_short, &key));
		}
	}
}
