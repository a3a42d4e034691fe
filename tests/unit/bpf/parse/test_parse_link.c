// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The cursor, and tags that the kernel keeps beside the frame. */

#include "bpf/parse/link.h"
#include "host.h"
#include "lib_test.h"
#include "packet.h"

TEST(take_gives_what_is_there_and_no_more)
{
	uint8_t bytes[8];
	struct cursor c = { bytes, bytes, bytes + sizeof(bytes) };

	assert_ptr_equal(cursor_take(&c, 5), bytes);
	assert_null(cursor_take(&c, 4));
	assert_int_equal(cursor_offset(&c), 5);
	assert_ptr_equal(cursor_take(&c, 3), bytes + 5);
	assert_ptr_equal(cursor_take(&c, 0), bytes + 8);
	assert_null(cursor_take(&c, 1));
}

TEST(settle_ends_at_the_limit)
{
	uint8_t bytes[CURSOR_LIMIT + 1];
	struct cursor c = { bytes, bytes, bytes + sizeof(bytes) };

	assert_non_null(cursor_take(&c, CURSOR_LIMIT));
	assert_true(cursor_settle(&c));
	assert_ptr_equal(c.pos, bytes + CURSOR_LIMIT);
	assert_non_null(cursor_take(&c, 1));
	assert_false(cursor_settle(&c));
}

/* Tags that the kernel keeps beside the frame are the outermost ones, also of what is in a tunnel. */
static const struct {
	uint16_t tci, vlan, outer_vlan;
	struct layer layers[9];
} tagged[] = {
	{ 0x6064, 0x64 | VLAN_PRESENT, 0, { ETH, IP4, UDP } },
	{ 0,
	  40 | VLAN_PRESENT,
	  VLAN_PRESENT,
	  { ETH, VLAN(20), VLAN(30), VLAN(40), IP4, UDP } },
	{ 10,
	  20 | VLAN_PRESENT,
	  10 | VLAN_PRESENT,
	  { ETH, IP4, VXLAN(1), ETH, VLAN(20), IP4, UDP } },
};

TEST(tag_beside_the_frame_is_the_outermost)
{
	for (size_t i = 0; i < sizeof(tagged) / sizeof(tagged[0]); i++) {
		struct packet_bytes packet;
		struct packet start = {};
		struct outcome got;

		push_vlan(&start, tagged[i].tci);
		packet_build(tagged[i].layers, &packet);
		got = host_parse_from(start, LINK_ETHERNET, packet.bytes,
				      packet.len);
		assert_int_equal(got.ret, 0);
		assert_int_equal(got.pkt.key.vlan, tagged[i].vlan);
		assert_int_equal(got.pkt.key.outer_vlan, tagged[i].outer_vlan);
	}
}

TEST(rejections_carry_their_reason)
{
	for (int reason = 0; reason < UNPARSED_MAX; reason++) {
		assert_true(reject(reason) < 0);
		assert_int_equal(reject_reason(reject(reason)), reason);
	}
}
