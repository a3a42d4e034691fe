// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Headers that are made from events. tshark reads them in e2e.traced_pcapng. */
#include "lib_test.h"

#include <netobs/trace.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>

static const uint8_t v4[2][16] = { { [10] = 0xff, 0xff, 10, 0, 0, 1 },
				   { [10] = 0xff, 0xff, 192, 0, 2, 7 } };
static const uint8_t v6[2][16] = { { 0xfd, [15] = 1 }, { 0xfd, [15] = 2 } };

static struct netobs_trace_event make_event(const uint8_t ends[2][16],
					    uint8_t protocol, uint32_t length)
{
	struct netobs_trace_event event = {
		.record = { .sz = sizeof(event), .type = NETOBS_RECORD_TRACE },
		.protocol = protocol,
		.length = length,
		.seq = 0x01020304,
		.ack = 0x05060708,
		.tcp_flags = 0x18,
		.src_port = 40000,
		.dst_port = 80,
		.point = NETOBS_TRACE_QUEUE,
	};

	memcpy(event.src, ends[0], sizeof(event.src));
	memcpy(event.dst, ends[1], sizeof(event.dst));
	return event;
}

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

/* RFC 1071: with its checksum, the sum of all is 0xffff. */
static uint32_t sum(uint32_t from, const uint8_t *bytes, uint32_t len)
{
	for (uint32_t i = 0; i < len; i += 2)
		from += get16(bytes + i);
	while (from >> 16)
		from = (from & 0xffff) + (from >> 16);
	return from;
}

TEST(lengths_are_those_of_the_packet)
{
	static const struct {
		const uint8_t (*ends)[16];
		uint8_t protocol;
		uint32_t length, captured, whole;
	} cases[] = {
		{ v4, IPPROTO_TCP, 0, 40, 40 },
		{ v4, IPPROTO_TCP, 1000, 40, 1040 },
		{ v6, IPPROTO_TCP, 1000, 60, 1060 },
		{ v4, IPPROTO_UDP, 108, 28, 128 },
		{ v6, IPPROTO_UDP, 8, 48, 48 },
		{ v4, IPPROTO_ICMP, 64, 28, 84 },
		{ v6, IPPROTO_ICMPV6, 64, 48, 104 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const bool is_v4 = cases[i].ends == v4;
		struct netobs_trace_event event = make_event(
			cases[i].ends, cases[i].protocol, cases[i].length);
		struct netobs_trace_packet packet;

		assert_int_equal(netobs_trace_packet_make(&event, &packet), 1);
		assert_int_equal(packet.captured, cases[i].captured);
		assert_int_equal(packet.length, cases[i].whole);
		assert_int_equal(get16(packet.bytes + (is_v4 ? 2 : 4)),
				 cases[i].whole - (is_v4 ? 0 : 40));
		assert_int_equal(packet.bytes[is_v4 ? 9 : 6], cases[i].protocol);
	}
}

TEST(checksums_are_valid_without_data)
{
	static const uint8_t protocols[] = { IPPROTO_TCP, IPPROTO_UDP };

	for (int i = 0; i < 4; i++) {
		const bool is_v4 = i % 2;
		const uint8_t protocol = protocols[i / 2];
		struct netobs_trace_event event =
			make_event(is_v4 ? v4 : v6, protocol,
				   protocol == IPPROTO_UDP ? 8 : 0);
		const uint32_t ip = is_v4 ? 20 : 40;
		struct netobs_trace_packet packet;
		uint32_t pseudo;

		assert_int_equal(netobs_trace_packet_make(&event, &packet), 1);
		if (is_v4)
			assert_int_equal(sum(0, packet.bytes, ip), 0xffff);
		pseudo = sum(protocol + packet.captured - ip,
			     packet.bytes + (is_v4 ? 12 : 8), is_v4 ? 8 : 32);
		assert_int_equal(sum(pseudo, packet.bytes + ip,
				     packet.captured - ip),
				 0xffff);
	}
}

TEST(fields_are_those_of_the_event)
{
	const struct netobs_trace_event event = make_event(v4, IPPROTO_TCP, 9);
	struct netobs_trace_packet packet;
	const uint8_t *tcp = packet.bytes + 20;

	assert_int_equal(netobs_trace_packet_make(&event, &packet), 1);
	assert_memory_equal(packet.bytes + 12, v4[0] + 12, 4);
	assert_memory_equal(packet.bytes + 16, v4[1] + 12, 4);
	assert_int_equal(get16(tcp), 40000);
	assert_int_equal(get16(tcp + 2), 80);
	assert_memory_equal(tcp + 4, "\1\2\3\4\5\6\7\10", 8);
	assert_int_equal(tcp[12], 0x50);
	assert_int_equal(tcp[13], 0x18);
	assert_int_equal(get16(tcp + 16), 0);
}

TEST(fragments_have_their_place)
{
	struct netobs_trace_event event = make_event(v4, IPPROTO_UDP, 1480);
	struct netobs_trace_packet packet;

	event.is_fragment = 1;
	event.ip_id = 0x1234;
	assert_int_equal(netobs_trace_packet_make(&event, &packet), 1);
	assert_int_equal(packet.captured, 28);
	assert_int_equal(get16(packet.bytes + 4), 0x1234);
	assert_int_equal(get16(packet.bytes + 6), 0x2000);
	event.offset = 1480;
	assert_int_equal(netobs_trace_packet_make(&event, &packet), 1);
	assert_int_equal(packet.captured, 20);
	assert_int_equal(packet.length, 1500);
	assert_int_equal(get16(packet.bytes + 6), 0x2000 | 1480 / 8);

	event = make_event(v6, IPPROTO_UDP, 1448);
	event.is_fragment = 1;
	event.offset = 1448;
	event.ip_id = 0x01020304;
	assert_int_equal(netobs_trace_packet_make(&event, &packet), 1);
	assert_int_equal(packet.captured, 48);
	assert_int_equal(packet.length, 48 + 1448);
	assert_int_equal(packet.bytes[6], IPPROTO_FRAGMENT);
	assert_int_equal(packet.bytes[40], IPPROTO_UDP);
	assert_int_equal(get16(packet.bytes + 42), 1448 | 1);
	assert_memory_equal(packet.bytes + 44, "\1\2\3\4", 4);
}

TEST(what_processes_do_has_no_packet)
{
	static const uint8_t points[] = { NETOBS_TRACE_SEND, NETOBS_TRACE_SENT,
					  NETOBS_TRACE_READY, NETOBS_TRACE_READ,
					  NETOBS_TRACE_ACKED };
	struct netobs_trace_event event = make_event(v4, IPPROTO_TCP, 1);
	struct netobs_trace_packet packet;

	for (size_t i = 0; i < sizeof(points); i++) {
		event.point = points[i];
		assert_int_equal(netobs_trace_packet_make(&event, &packet), 0);
	}
}

/* Of large segments, a header of IP does not have the length. */
TEST(lengths_beyond_a_header_are_0_in_it)
{
	struct netobs_trace_event event = make_event(v4, IPPROTO_TCP, 70000);
	struct netobs_trace_packet packet;

	assert_int_equal(netobs_trace_packet_make(&event, &packet), 1);
	assert_int_equal(packet.length, 70040);
	assert_int_equal(get16(packet.bytes + 2), 0);
}

TEST(wrong_arguments_are_refused)
{
	struct netobs_trace_event event = make_event(v4, IPPROTO_TCP, 1);
	struct netobs_trace_packet packet;

	assert_int_equal(netobs_trace_packet_make(NULL, &packet), -EINVAL);
	assert_int_equal(netobs_trace_packet_make(&event, NULL), -EINVAL);
	event.record.type = NETOBS_RECORD_DROP;
	assert_int_equal(netobs_trace_packet_make(&event, &packet), -EINVAL);
	event.record.type = NETOBS_RECORD_TRACE;
	event.record.sz = sizeof(event.record);
	assert_int_equal(netobs_trace_packet_make(&event, &packet), -EINVAL);
}
