// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The short way through the parser: it takes plain frames, and says the same. */
#include "host.h"
#include "lib_test.h"
#include "samples.h"

#include "bpf/parse/tunnel.h"

static const struct arrival arrivals[] = {
	{ .ifindex = 2 },
	{ .ifindex = UINT32_MAX,
	  .netns = UINT16_MAX,
	  .vlan = VLAN_PRESENT | VLAN_ID_MASK,
	  .flags = KEY_EGRESS },
};

enum { N_ARRIVALS = sizeof(arrivals) / sizeof(arrivals[0]) };

static struct outcome parse_general(const struct arrival *arrival,
				    const void *bytes, size_t len)
{
	struct packet start = {
		.key.ifindex = arrival->ifindex,
		.key.netns = arrival->netns,
		.key.vlan = arrival->vlan,
		.key.flags = arrival->flags,
	};

	return host_parse_from(start, LINK_ETHERNET, bytes, len);
}

static bool leads_to_tunnel(uint16_t port)
{
	return port == 4789 || port == 8472 || port == 6081 || port == 2152;
}

/* Of a frame that the general parser made a flow of. */
static bool is_plain(const struct packet *pkt, const uint8_t *bytes)
{
	bool is_ipv6 = pkt->key.flags & KEY_IPV6;

	if (pkt->l3_offset != 14 || pkt->fragment != FRAGMENT_NONE ||
	    pkt->key.tunnel != TUNNEL_NONE || !pkt->ip_len)
		return false;
	if (bytes[is_ipv6 ? 20 : 23] != pkt->key.proto ||
	    (!is_ipv6 && bytes[14] != 0x45))
		return false;
	if (pkt->key.proto == IP_PROTO_UDP)
		return !leads_to_tunnel(pkt->key.dst_port);
	return pkt->key.proto == IP_PROTO_TCP;
}

/* Whether the frame was taken. */
static bool compare_from(const struct arrival *arrival, const uint8_t *bytes,
			 size_t len)
{
	struct outcome general = parse_general(arrival, bytes, len);
	struct packet plain;
	bool is_taken = host_parse_plain(arrival, bytes, len, &plain);

	assert_int_equal(is_taken, !general.ret && !general.cut &&
					   is_plain(&general.pkt, bytes));
	if (is_taken) {
		assert_false(general.cut);
		assert_true(host_is_same(&plain, &general.pkt));
	}
	return is_taken;
}

static bool compare(const uint8_t *bytes, size_t len)
{
	bool is_taken = false;

	for (int i = 0; i < N_ARRIVALS; i++)
		is_taken = compare_from(&arrivals[i], bytes, len);
	return is_taken;
}

/* By its layers, which is another way to say what plain is. */
static bool has_plain_layers(const struct layer *l)
{
	if (l++->kind != LAYER_ETH)
		return false;
	if (l->kind == LAYER_IP4 ? l->a || l->b & ~0x4000U :
				   l->kind != LAYER_IP6 || l->a)
		return false;
	l++;
	if (l->kind != LAYER_TCP &&
	    (l->kind != LAYER_UDP || leads_to_tunnel(l->b)))
		return false;
	l++;
	while (l->kind == LAYER_DATA || l->kind == LAYER_PAD)
		l++;
	return l->kind == LAYER_END;
}

TEST(samples_are_taken_when_their_layers_are_plain)
{
	unsigned int n_plain = 0;

	for (size_t i = 0; i < n_samples; i++) {
		bool is_plain = has_plain_layers(samples[i].layers);
		struct packet_bytes packet;

		packet_build(samples[i].layers, &packet);
		if (compare(packet.bytes, packet.len) != is_plain)
			fail_msg("%s", samples[i].name);
		n_plain += is_plain;
	}
	assert_true(n_plain >= 8);
}

TEST(truncated_samples_say_the_same)
{
	for (size_t i = 0; i < n_samples; i++) {
		struct packet_bytes packet;

		packet_build(samples[i].layers, &packet);
		for (size_t len = 0; len < packet.len && len < 256; len++)
			compare(packet.bytes, len);
	}
}

/* Frames that are plain but for the bytes that a test changes. */
static const struct layer plain_frames[][PACKET_LAYERS] = {
	{ ETH, IP4, TCP_OPTIONS(0x5a, 12), DATA(30) },
	{ ETH, IP4, UDP, DATA(30) },
	{ ETH, IP6, TCP_OPTIONS(0x5a, 12), DATA(30) },
	{ ETH, IP6, UDP, DATA(30) },
};

enum { N_FRAMES = sizeof(plain_frames) / sizeof(plain_frames[0]) };

TEST(every_value_of_every_header_byte_says_the_same)
{
	for (int i = 0; i < N_FRAMES; i++) {
		struct packet_bytes packet;

		packet_build(plain_frames[i], &packet);
		assert_true(compare(packet.bytes, packet.len));
		for (size_t at = 0; at < packet.headers; at++) {
			uint8_t byte = packet.bytes[at];

			for (int value = 0; value < 256; value++) {
				packet.bytes[at] = value;
				compare(packet.bytes, packet.len);
			}
			packet.bytes[at] = byte;
		}
	}
}

/* A few bits or bytes at a time, and cut anywhere. */
TEST(samples_with_changes_say_the_same)
{
	unsigned int n_taken = 0;

	for (int round = 0; round < 200000; round++) {
		const struct sample *sample = &samples[lrand48() % n_samples];
		const bool is_plain = lrand48() % 2;
		struct packet_bytes packet;
		size_t headers, len;

		packet_build(is_plain ? plain_frames[lrand48() % N_FRAMES] :
					sample->layers,
			     &packet);
		headers = packet.headers < 128 ? packet.headers : 128;
		for (long n = lrand48() % 4; n && headers; n--) {
			uint8_t *byte = &packet.bytes[lrand48() % headers];

			*byte = is_plain ? lrand48() >> 8 :
					   *byte ^ 1 << lrand48() % 8;
		}
		len = lrand48() % 4 ? packet.len : lrand48() % packet.len;
		n_taken += compare(packet.bytes, len);
	}
	assert_in_range(n_taken, 10000, 180000);
}

/* The field is compared for all four ports at once. */
TEST(tunnel_ports_are_those_of_the_general_parser)
{
	static const struct tunnel_ports tables[] = {
		{ .vxlan = { 4789, 8472 }, .geneve = 6081, .gtpu = 2152 },
		{ .all = 0 },
		{ .vxlan = { 1, 2 }, .geneve = 0x8000, .gtpu = 0x7fff },
		{ .vxlan = { 0xffff, 0 }, .gtpu = 0x100 },
		{ .gtpu = 4790 },
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (uint32_t port = 0; port <= UINT16_MAX; port++)
			assert_int_equal(is_tunnel_port(&tables[i], port),
					 match_port(&tables[i], port) !=
						 TUNNEL_NONE);
}
