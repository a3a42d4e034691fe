/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The packets that the benchmarks make up are of flows that are distributed as they say. */
#include "host.h"
#include "lib_test.h"

#include <math.h>
#include <netinet/in.h>

#include "bench/runner.h"

enum { MOST_FLOWS = 16384 };

static const uint32_t flows[] = { 1, 2, 3, 64, 1000, MOST_FLOWS };

static struct packets packets;
static uint32_t counts[MOST_FLOWS];

/* The packets of a whole order. */
static void count_flows(enum order order)
{
	memset(counts, 0, sizeof(counts));
	for (uint32_t i = 0; i < packets.length; i++) {
		uint32_t flow;

		packets_take(&packets, order, &flow, 1);
		assert_in_range(flow, 0, packets.flows - 1);
		counts[flow]++;
	}
}

/* Five standard deviations, and what few samples round. */
static bool is_near(uint32_t count, double expected)
{
	return fabs(count - expected) < 5 * sqrt(expected) + 1;
}

TEST(each_flow_is_there_once)
{
	assert_int_equal(packets_prepare(&packets, MOST_FLOWS, false), 0);
	memset(counts, 0, sizeof(counts));
	for (uint32_t i = 0; i < MOST_FLOWS; i++)
		counts[packets.each[i]]++;
	for (uint32_t i = 0; i < MOST_FLOWS; i++)
		assert_int_equal(counts[i], 1);
	assert_int_not_equal(packets.each[0] + 1, packets.each[1]);
	packets_clear(&packets);
}

TEST(uniform_flows_are_equally_frequent)
{
	for (size_t i = 0; i < ARRAY_SIZE(flows); i++) {
		assert_int_equal(packets_prepare(&packets, flows[i], true), 0);
		count_flows(ORDER_UNIFORM);
		for (uint32_t flow = 0; flow < flows[i]; flow++)
			assert_true(is_near(counts[flow],
					    (double)packets.length / flows[i]));
	}
	packets_clear(&packets);
}

TEST(zipf_flows_follow_the_law)
{
	for (size_t i = 0; i < ARRAY_SIZE(flows); i++) {
		double sum = 0;

		assert_int_equal(packets_prepare(&packets, flows[i], true), 0);
		for (uint32_t rank = 1; rank <= flows[i]; rank++)
			sum += pow(rank, -1.1);
		count_flows(ORDER_ZIPF);
		for (uint32_t rank = 1; rank <= flows[i]; rank++)
			assert_true(
				is_near(counts[packets.each[rank - 1]],
					packets.length * pow(rank, -1.1) / sum));
	}
	packets_clear(&packets);
}

TEST(a_frame_is_a_packet_of_its_flow)
{
	struct outcome parsed;
	uint8_t frame[FRAME];

	frame_make(frame);
	frame_set_flow(frame, 77);
	parsed = host_parse(LINK_ETHERNET, frame, FRAME);
	assert_int_equal(parsed.ret, 0);
	assert_int_equal(parsed.pkt.key.proto, IPPROTO_UDP);
	assert_int_equal(parsed.pkt.key.src.words[3], 77);
	assert_int_equal(parsed.pkt.key.src_port, 7);
	assert_int_equal(parsed.pkt.key.dst_port, 9);
}
