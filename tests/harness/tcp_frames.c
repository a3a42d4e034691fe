// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_test.h"

#include "tcp_frames.h"

#include "host.h"
#include "prog_test.h"

#include <endian.h>

enum { SERVER_PORT = 80, LAYERS_MAX = 32, STAMPS_SIZE = 12 };

static void poke32(struct layer **at, uint32_t offset, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		*(*at)++ = (struct layer)POKE(offset + i,
					      value >> (24 - 8 * i) & 0xff);
}

/* The transport header, with ports, numbers and a window. */
static void put_tcp(struct layer **at, const struct tcp_frame *frame)
{
	uint32_t client = frame->port, server = SERVER_PORT;

	*(*at)++ = (struct layer)TCP_OPTIONS(frame->flags,
					     frame->stamps ? STAMPS_SIZE : 0);
	poke32(at, 0,
	       frame->is_answer ? server << 16 | client : client << 16 | server);
	poke32(at, 4, frame->seq);
	poke32(at, 8, frame->ack);
	*(*at)++ = (struct layer)POKE(14, 0x10);
	if (frame->len)
		*(*at)++ = (struct layer)DATA(frame->len);
}

static void put_stamps(uint8_t *at, const struct tcp_frame *frame)
{
	const uint32_t words[] = { htobe32(frame->tsval), htobe32(frame->tsecr) };
	const uint8_t nops[] = { 1, 1 }, kind[] = { 8, 10 };

	if (frame->stamps == STAMPS_FIRST) {
		memcpy(at, nops, sizeof(nops));
		at += sizeof(nops);
	}
	memcpy(at, kind, sizeof(kind));
	memcpy(at + sizeof(kind), words, sizeof(words));
	if (frame->stamps == STAMPS_SHIFTED)
		memcpy(at + sizeof(kind) + sizeof(words), nops, sizeof(nops));
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t kept = a[i];

		a[i] = b[i];
		b[i] = kept;
	}
}

/* The other way: the addresses of the IP header at @offset. */
static void answer(uint8_t *bytes, size_t offset, bool is_ipv6)
{
	uint8_t *src = bytes + offset + (is_ipv6 ? 8 : 12);

	swap_bytes(src, src + (is_ipv6 ? 16 : 4), is_ipv6 ? 16 : 4);
}

/* All but the transport header. Returns where that goes. */
static struct layer *put_network(struct layer layers[static LAYERS_MAX],
				 const struct tcp_frame *frame)
{
	const struct layer vxlan[] = { ETH, IP4, VXLAN(7) };
	struct layer *at = layers;

	memset(layers, 0, LAYERS_MAX * sizeof(*layers));
	if (frame->is_vxlan) {
		memcpy(at, vxlan, sizeof(vxlan));
		at += ARRAY_SIZE(vxlan);
	}
	*at++ = (struct layer)ETH;
	*at++ = frame->is_ipv6 ? (struct layer)IP6 : (struct layer)IP4;
	return at;
}

/* Have it go the way that it goes. */
static void direct(const struct tcp_frame *frame, uint8_t *bytes)
{
	size_t offset = 14;

	if (!frame->is_answer)
		return;
	if (frame->is_vxlan) {
		answer(bytes, offset, false);
		offset += 20 + 8 + 8 + 14;
	}
	answer(bytes, offset, frame->is_ipv6);
}

static struct flow_key send(struct prog *prog, const struct tcp_frame *frame,
			    const struct packet_bytes *bytes)
{
	struct prog_packet packet = { .bytes = bytes->bytes };
	struct outcome parsed;

	packet.len = bytes->len;
	packet.egress = frame->egress;
	packet.time_ns = frame->ns ?: (1000000 + frame->us) * 1000;
	packet.gso_segs = frame->segments;
	if (frame->segments)
		packet.gso_size =
			(frame->len + frame->segments - 1) / frame->segments;
	assert_int_equal(prog_run(prog, &packet, NULL), 0);
	parsed = host_parse(LINK_ETHERNET, bytes->bytes, bytes->len);
	parsed.pkt.key.ifindex = 1; /* where the kernel says test runs are */
	return parsed.pkt.key;
}

struct flow_key tcp_send(struct prog *prog, struct tcp_frame frame)
{
	struct layer layers[LAYERS_MAX], *at = put_network(layers, &frame);
	struct packet_bytes bytes;

	put_tcp(&at, &frame);
	packet_build(layers, &bytes);
	if (frame.stamps)
		put_stamps(bytes.bytes + bytes.headers - STAMPS_SIZE, &frame);
	direct(&frame, bytes.bytes);
	return send(prog, &frame, &bytes);
}

struct flow_key echo_send(struct prog *prog, struct tcp_frame frame,
			  uint32_t number)
{
	struct layer layers[LAYERS_MAX], *at = put_network(layers, &frame);
	uint8_t type = frame.is_ipv6 ? 128 + frame.is_answer :
				       8 * !frame.is_answer;
	uint32_t wire = htobe32(number);
	struct packet_bytes bytes;

	*at++ = (struct layer)POKE(frame.is_ipv6 ? 22 : 14, frame.port >> 8);
	*at++ = (struct layer)POKE(frame.is_ipv6 ? 23 : 15, frame.port & 0xff);
	*at++ = frame.is_ipv6 ? (struct layer)ICMP6(type, 0) :
				(struct layer)ICMP(type, 0);
	*at++ = (struct layer)DATA(56);
	packet_build(layers, &bytes);
	memcpy(bytes.bytes + bytes.headers, &wire, sizeof(wire));
	direct(&frame, bytes.bytes);
	return send(prog, &frame, &bytes);
}

/* What comes when, in microseconds, where the client's numbers begin at 100, the server's at 500. */
static const struct tcp_frame steps[] = {
	{ .flags = SYN, .seq = 100, .us = 0 },
	{ .is_answer = true, .flags = SYN | ACK, .seq = 500, .ack = 101, .us = 300 },
	{ .flags = ACK, .seq = 101, .ack = 501, .us = 310 },
	{ .flags = ACK | PSH, .seq = 101, .ack = 501, .len = 10, .us = 2000 },
	{ .is_answer = true, .flags = ACK, .seq = 501, .ack = 111, .us = 2400 },
	{ .is_answer = true,
	  .flags = ACK | PSH,
	  .seq = 501,
	  .ack = 111,
	  .len = 20,
	  .us = 52000 },
	{ .flags = ACK, .seq = 111, .ack = 521, .us = 52020 },
};

void tcp_exchange(struct prog *prog, struct tcp_frame common,
		  struct flow_key *ret_key)
{
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct tcp_frame frame = steps[i];
		struct flow_key key;

		frame.is_ipv6 = common.is_ipv6;
		frame.is_vxlan = common.is_vxlan;
		frame.port = common.port;
		frame.egress = common.egress == frame.is_answer;
		frame.us += common.us;
		key = tcp_send(prog, frame);
		if (!i)
			*ret_key = key;
	}
}
