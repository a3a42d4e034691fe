// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a buffer counts as on the wire. */

#include "bpf/parse/wire.h"
#include "host.h"
#include "lib_test.h"
#include "packet.h"

enum {
	ETH_LEN = 14,
	TCP4 = 20 + 20,
	TCP4_OPTIONS = 20 + 32,
	UDP4 = 20 + 8,
	VXLAN_LEN = 20 + 8 + 8 + 14,
	MSS = 1000,
};

struct wire_case {
	const char *name;
	enum link_kind link;
	struct layer layers[PACKET_LAYERS];
	uint32_t payload;  /* in place of what DATA there is */
	struct buffer buf; /* without the length */
	struct wire_size want;
};

/* @headers: from the IP header on, of each segment; @link: before that. */
#define SEGMENTS(n, payload, headers, link)                    \
	{                                                      \
		(n), (payload) + (n) * (headers),              \
			(payload) + (n) * ((headers) + (link)) \
	}

static const struct wire_case cases[] = {
	{ "a_packet", .layers = { ETH, IP4, UDP }, .payload = 100,
	  .want = SEGMENTS(1, 100, UDP4, ETH_LEN) },
	{ "padding_is_link_bytes_only", .layers = { ETH, IP4, UDP, PAD(60) },
	  .want = { 1, UDP4, 60 } },
	{ "ipv6_padding", .layers = { ETH, IP6, PAD(60) }, .want = { 1, 40, 60 } },
	{ "padding_behind_a_tag", .layers = { ETH, VLAN(1), IP4, UDP, PAD(60) },
	  .want = { 1, UDP4, 60 } },
	{ "tag_beside_the_frame", .layers = { ETH, IP4, UDP, PAD(60) },
	  .buf = { .tag_len = 4 }, .want = { 1, UDP4, 64 } },
	{ "no_link_header",
	  LINK_NONE,
	  { IP4, UDP },
	  .payload = 10,
	  .want = SEGMENTS(1, 10, UDP4, 0) },
	{ "gso_tcp", .layers = { ETH, IP4, TCP(0x10) }, .payload = 10 * MSS,
	  .buf = { .gso_size = MSS, .gso_segs = 10 },
	  .want = SEGMENTS(10, 10 * MSS, TCP4, ETH_LEN) },
	{ "gso_tcp_short_last_segment", .layers = { ETH, IP4, TCP(0x10) },
	  .payload = 9 * MSS + 1, .buf = { .gso_size = MSS, .gso_segs = 10 },
	  .want = SEGMENTS(10, 9 * MSS + 1, TCP4, ETH_LEN) },
	{ "gso_tcp_options_are_repeated",
	  .layers = { ETH, IP4, TCP_OPTIONS(0x10, 12) }, .payload = 3 * MSS,
	  .buf = { .gso_size = MSS, .gso_segs = 3 },
	  .want = SEGMENTS(3, 3 * MSS, TCP4_OPTIONS, ETH_LEN) },
	{ "gso_tcp_segments_not_given", .layers = { ETH, IP4, TCP(0x10) },
	  .payload = 10 * MSS, .buf = { .gso_size = MSS },
	  .want = SEGMENTS(10, 10 * MSS, TCP4, ETH_LEN) },
	{ "gso_tcp_segments_not_given_short_last",
	  .layers = { ETH, IP4, TCP(0x10) }, .payload = 10 * MSS + 1,
	  .buf = { .gso_size = MSS },
	  .want = SEGMENTS(11, 10 * MSS + 1, TCP4, ETH_LEN) },
	{ "gso_without_payload", .layers = { ETH, IP4, TCP(0x10) },
	  .buf = { .gso_size = MSS }, .want = SEGMENTS(1, 0, TCP4, ETH_LEN) },
	{ "gso_of_one_segment", .layers = { ETH, IP4, TCP(0x10) }, .payload = 5,
	  .buf = { .gso_size = MSS, .gso_segs = 1 },
	  .want = SEGMENTS(1, 5, TCP4, ETH_LEN) },
	{ "gso_udp", .layers = { ETH, IP4, UDP }, .payload = 4 * 1200 + 7,
	  .buf = { .gso_size = 1200, .gso_segs = 5 },
	  .want = SEGMENTS(5, 4 * 1200 + 7, UDP4, ETH_LEN) },
	{ "gso_with_tags", .layers = { ETH, VLAN(1), IP4, TCP(0x10) },
	  .payload = 2 * MSS,
	  .buf = { .tag_len = 4, .gso_size = MSS, .gso_segs = 2 },
	  .want = SEGMENTS(2, 2 * MSS, TCP4, ETH_LEN + 4 + 4) },
	{ "gso_without_link_header",
	  LINK_NONE,
	  { IP4, TCP(0x10) },
	  .payload = 2 * MSS,
	  .buf = { .gso_size = MSS, .gso_segs = 2 },
	  .want = SEGMENTS(2, 2 * MSS, TCP4, 0) },
	{ "gso_vxlan", .layers = { ETH, IP4, VXLAN(1), ETH, IP4, TCP(0x10) },
	  .payload = 10 * MSS, .buf = { .gso_size = MSS, .gso_segs = 10 },
	  .want = SEGMENTS(10, 10 * MSS, VXLAN_LEN + TCP4, ETH_LEN) },
	{ "gso_ipv6_extensions", .layers = { ETH, IP6, EXT8(60), TCP(0x10) },
	  .payload = 2 * MSS, .buf = { .gso_size = MSS, .gso_segs = 2 },
	  .want = SEGMENTS(2, 2 * MSS, 40 + 8 + 20, ETH_LEN) },
	{ "big_tcp",
	  .layers = { ETH, IP6_JUMBO, EXT8(0), POKE(2, 0xc2), POKE(3, 4),
		      TCP(0x10) },
	  .payload = 100 * MSS, .buf = { .gso_size = MSS, .gso_segs = 100 },
	  .want = SEGMENTS(100, 100 * MSS, 40 + 20, ETH_LEN) },
	{ "big_tcp_segments_not_given",
	  .layers = { ETH, IP6_JUMBO, EXT8(0), POKE(2, 0xc2), POKE(3, 4),
		      TCP(0x10) },
	  .payload = 100 * MSS, .buf = { .gso_size = MSS },
	  .want = SEGMENTS(100, 100 * MSS, 40 + 20, ETH_LEN) },
	{ "sent_jumbogram",
	  .layers = { ETH, IP6_JUMBO, EXT8(0), POKE(2, 0xc2), POKE(3, 4),
		      TCP(0x10) },
	  .payload = 70000, .want = SEGMENTS(1, 70000, 40 + 8 + 20, ETH_LEN) },
	{ "big_tcp_ipv4",
	  .layers = { ETH, IP4, POKE(2, 0), POKE(3, 0), TCP(0x10) },
	  .payload = 100 * MSS, .buf = { .gso_size = MSS, .gso_segs = 100 },
	  .want = SEGMENTS(100, 100 * MSS, TCP4, ETH_LEN) },
	{ "a_frame_that_is_not_ip", .layers = { ETH, ARP, PAD(60) },
	  .want = { 1, 46, 60 } },
	{ "a_frame_cut_in_the_link_header", .layers = { ETH, VLAN(1) },
	  .want = { 1, 0, 18 } },
};

/* The IP header has to speak of the payload that is not built. */
static void say_length(struct packet_bytes *packet, size_t l3, uint32_t payload)
{
	uint8_t *ip = packet->bytes + l3;
	bool ipv6 = ip[0] >> 4 == 6;
	uint8_t *field = ip + (ipv6 ? 4 : 2);
	uint32_t len = packet->unpadded - l3 - (ipv6 ? 40 : 0) + payload;

	if (!payload || !(field[0] | field[1]))
		return;
	field[0] = len >> 8;
	field[1] = len & 0xff;
}

static void wire_size_is_what_is_sent(void **state)
{
	const struct wire_case *wire = *state;
	struct buffer buf = wire->buf;
	struct packet_bytes packet;
	struct outcome parsed;
	struct wire_size got;

	packet_build(wire->layers, &packet);
	parsed = host_parse(wire->link, packet.bytes, packet.len);
	say_length(&packet, parsed.pkt.l3_offset, wire->payload);
	parsed = host_parse(wire->link, packet.bytes, packet.len);
	buf.len = packet.len + wire->payload;
	got = wire_size(&parsed.pkt, &buf);
	assert_int_equal(got.packets, wire->want.packets);
	assert_int_equal(got.bytes, wire->want.bytes);
	assert_int_equal(got.l2_bytes, wire->want.l2_bytes);
}

int main(void)
{
	enum { N = sizeof(cases) / sizeof(cases[0]) };
	struct CMUnitTest tests[N] = {};

	for (size_t i = 0; i < N; i++) {
		tests[i].name = cases[i].name;
		tests[i].test_func = wire_size_is_what_is_sent;
		tests[i].initial_state = (void *)&cases[i];
	}
	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
