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

static struct outcome parse_beside(uint16_t tci, const struct layer *layers)
{
	struct packet_bytes packet;
	struct packet start = {};

	push_vlan(&start, tci);
	packet_build(layers, &packet);
	return host_parse_from(start, LINK_ETHERNET, packet.bytes, packet.len);
}

TEST(tag_beside_the_frame_is_the_only_one)
{
	static const struct layer layers[] = { ETH, IP4, UDP, {} };
	struct outcome got = parse_beside(0x6064, layers);

	assert_int_equal(got.ret, 0);
	assert_int_equal(got.pkt.key.vlan, VLAN_PRESENT | 0x64);
	assert_int_equal(got.pkt.key.outer_vlan, 0);
	assert_int_equal(got.pkt.l3_offset, 14);
}

TEST(tag_beside_the_frame_is_the_outermost)
{
	static const struct layer layers[] = { ETH,	 VLAN(20), VLAN(30),
					       VLAN(40), IP4,	   UDP,
					       {} };
	struct outcome got = parse_beside(0, layers);

	assert_int_equal(got.ret, 0);
	assert_int_equal(got.pkt.key.vlan, VLAN_PRESENT | 40);
	assert_int_equal(got.pkt.key.outer_vlan, VLAN_PRESENT);
}

TEST(tag_beside_the_frame_is_kept_by_a_tunnel)
{
	static const struct layer layers[] = { ETH,	 IP4, VXLAN(1), ETH,
					       VLAN(20), IP4, UDP,	{} };
	struct outcome got = parse_beside(10, layers);

	assert_int_equal(got.ret, 0);
	assert_int_equal(got.pkt.key.tunnel, TUNNEL_VXLAN);
	assert_int_equal(got.pkt.key.vlan, VLAN_PRESENT | 20);
	assert_int_equal(got.pkt.key.outer_vlan, VLAN_PRESENT | 10);
}

TEST(rejections_carry_their_reason)
{
	for (int reason = 0; reason < UNPARSED_MAX; reason++) {
		assert_true(reject(reason) < 0);
		assert_int_equal(reject_reason(reject(reason)), reason);
	}
}
