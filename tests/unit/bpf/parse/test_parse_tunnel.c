// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What of a tunnel is part of the flow's identity. */

#include "host.h"
#include "lib_test.h"
#include "packet.h"

enum { OUTER_SRC = 14 + 12, OUTER_DST = 14 + 16, OUTER_SRC_PORT = 14 + 20 };
enum { NEXT_SEGMENT = 14 + 24, LAST_SEGMENT = 14 + 40 + 8 };

static const struct layer layers[] = { ETH, IP4, VXLAN(5), ETH, IP4, UDP, {} };

static struct packet_bytes vxlan(void)
{
	struct packet_bytes packet;

	packet_build(layers, &packet);
	return packet;
}

static struct packet parse(const struct packet_bytes *packet,
			   enum tunnel_type type)
{
	struct outcome got =
		host_parse(LINK_ETHERNET, packet->bytes, packet->len);

	assert_int_equal(got.ret, 0);
	assert_int_equal(got.pkt.key.tunnel, type);
	return got.pkt;
}

static struct flow_key key_of(const struct packet_bytes *packet)
{
	return parse(packet, TUNNEL_VXLAN).key;
}

TEST(outer_addresses_are_part_of_the_key_and_the_source_port_is_not)
{
	struct packet_bytes one = vxlan(), port = one, address = one, back = one;
	const struct flow_key key = key_of(&one);
	struct flow_key other;

	port.bytes[OUTER_SRC_PORT] ^= 0x15;
	other = key_of(&port);
	assert_memory_equal(&key, &other, sizeof(key));
	address.bytes[OUTER_DST + 3] ^= 0x80;
	assert_int_not_equal(key.outer_hash, key_of(&address).outer_hash);
	/* The way through the tunnel matters, too. */
	memcpy(back.bytes + OUTER_SRC, one.bytes + OUTER_DST, 4);
	memcpy(back.bytes + OUTER_DST, one.bytes + OUTER_SRC, 4);
	assert_int_not_equal(key.outer_hash, key_of(&back).outer_hash);
}

/* Each router on the way writes another destination into the header. */
TEST(the_end_of_segments_is_the_last_one)
{
	static const struct layer behind[][6] = {
		{ ETH, IP6, SRH(3), IP4, UDP },
		{ ETH, IP6, SRH(3), VXLAN(5), ETH },
	};
	static const struct layer inner[] = { IP4, UDP, {} };
	static const enum tunnel_type types[] = { TUNNEL_SRV6, TUNNEL_VXLAN };

	for (int i = 0; i < 2; i++) {
		struct layer all[PACKET_LAYERS] = { 0 };
		struct packet_bytes packet;
		struct packet a, b, c;

		memcpy(all, behind[i], sizeof(behind[i]));
		memcpy(all + 6, inner, i * sizeof(inner));
		packet_build(all, &packet);
		a = parse(&packet, types[i]);
		packet.bytes[NEXT_SEGMENT + 15] ^= 1;
		b = parse(&packet, types[i]);
		assert_memory_equal(&a.key, &b.key, sizeof(a.key));
		assert_memory_equal(&b.outer_dst, packet.bytes + LAST_SEGMENT,
				    16);
		packet.bytes[LAST_SEGMENT + 15] ^= 1;
		c = parse(&packet, types[i]);
		assert_int_not_equal(a.key.outer_hash, c.key.outer_hash);
	}
}
