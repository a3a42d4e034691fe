// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Two tallies of a flow become one, in whatever order they come. */
#include "host.h"
#include "lib_test.h"

#include "bpf/store/tally.h"

static struct flow_tally part(uint64_t packets, uint64_t first_ns,
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

TEST(sums_extremes_and_the_latest_are_kept)
{
	const struct flow_tally parts[] = {
		part(1, 500, 500, 64),
		part(20, 400, 450, 255),
		part(300, 510, 800, 1),
		part(4000, 600, 900, 64),
	};

	for (size_t start = 0; start < ARRAY_SIZE(parts); start++) {
		struct flow_tally tally = parts[start];

		tally.attrs.dscp = start;
		tally.attrs.marks = 0x11001 << start;
		for (size_t i = 1; i < ARRAY_SIZE(parts); i++) {
			size_t which = (start + i) % ARRAY_SIZE(parts);
			struct flow_tally more = parts[which];

			more.attrs.dscp = which;
			more.attrs.marks = 0x11001 << which;
			tally_add(&tally, &more);
		}
		assert_int_equal(tally.packets, 4321);
		assert_int_equal(tally.bytes, 432100);
		assert_int_equal(tally.l2_bytes, 4321 * 114);
		assert_int_equal(tally.first_ns, 400);
		assert_int_equal(tally.last_ns, 900);
		assert_int_equal(tally.attrs.ttl_min, 1);
		assert_int_equal(tally.attrs.ttl_max, 255);
		assert_int_equal(tally.attrs.dscp, 3);
		assert_int_equal(tally.attrs.marks, 0xff00f);
	}
}

/* Of the packet that was first, whichever tally comes first. */
TEST(the_flow_label_is_that_of_the_first)
{
	struct flow_tally early = part(1, 10, 20, 1), late = part(1, 30, 40, 1);
	struct flow_tally sum = late;

	early.attrs.flow_label = 5;
	late.attrs.flow_label = 6;
	sum.attrs.flow_label = 6;
	tally_add(&sum, &early);
	assert_int_equal(sum.attrs.flow_label, 5);
	tally_add(&sum, &late);
	assert_int_equal(sum.attrs.flow_label, 5);
}

TEST(the_first_addresses_known_are_kept)
{
	struct flow_tally without = part(1, 1, 1, 1), with = part(1, 2, 2, 1);
	struct flow_tally other = part(1, 3, 3, 1);

	with.attrs.has_mac = other.attrs.has_mac = 1;
	memset(with.macs, 0x11, sizeof(with.macs));
	memset(other.macs, 0x22, sizeof(other.macs));
	tally_add(&without, &with);
	assert_true(without.attrs.has_mac);
	assert_memory_equal(without.macs, with.macs, sizeof(with.macs));
	tally_add(&without, &other);
	assert_memory_equal(without.macs, with.macs, sizeof(with.macs));
}
