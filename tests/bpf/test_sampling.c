// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What the programs sample, in what proportion, and that the rest is counted. */
#include "prog_test.h"

#include "bpf/sample.h"
#include "host.h"
#include "lib_lab.h"

enum {
	MANY = 10000000, /* a fourth of them in slow guests */
	SEGMENTS = 45,
	SEGMENT = 60,
	PORTS = 400,
	PAYLOAD = 64,
	ROUNDS = 2000,
	FLOWS = 100,
};

static const struct prog_options one_packet_of_100 = { .sampling_interval = 100 };

static uint32_t many(void)
{
	return lab_shrink() > 1 ? MANY / 4 : MANY;
}

static struct count sum_of(const struct prog_flows *flows)
{
	struct count sum = { 0 };

	for (size_t i = 0; i < flows->n; i++) {
		sum.packets += flows->entries[i].tally.packets;
		sum.bytes += flows->entries[i].tally.bytes;
	}
	return sum;
}

static void assert_share(uint64_t part, uint64_t whole, uint32_t interval,
			 double tolerance)
{
	double error = (double)part * interval / (double)whole - 1;

	if (error < -tolerance || error > tolerance)
		fail_msg("%ju of %ju, 1 of %u: an error of %.2f %%",
			 (uintmax_t)part, (uintmax_t)whole, interval,
			 error * 100);
}

static void run_repeatedly(struct prog *prog, const struct layer *layers,
			   uint32_t repeat, uint32_t segments)
{
	struct packet_bytes bytes;
	struct prog_packet packet = {
		.bytes = bytes.bytes,
		.repeat = repeat,
		.gso_segs = segments > 1 ? segments : 0,
		.gso_size = segments > 1 ? SEGMENT : 0,
	};

	packet_build(layers, &bytes);
	packet.len = bytes.len;
	assert_int_equal(prog_run(prog, &packet, NULL), 0);
}

/* All that was seen was sampled or sampled out, to the packet and the byte. */
static void assert_counted(struct prog *prog, uint64_t seen)
{
	struct count sampled = sum_of(prog_test_flows(prog, 0));
	struct counters counters = prog_counters(prog, 0);

	assert_int_equal(counters.seen.packets, seen);
	assert_int_equal(counters.sampled_out.packets, seen - sampled.packets);
	assert_int_equal(counters.sampled_out.bytes,
			 counters.seen.bytes - sampled.bytes);
	assert_share(sampled.packets, seen, prog->options.sampling_interval,
		     0.01);
	assert_share(sampled.bytes, counters.seen.bytes,
		     prog->options.sampling_interval, 0.01);
}

TEST(scaled_totals_are_those_of_all_packets)
{
	static const struct layer udp[] = { ETH, IP4, UDP, DATA(PAYLOAD), {} };
	static const uint32_t intervals[] = { 2, 100, 10000 };

	for (size_t i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++) {
		const struct prog_options options = {
			.sampling_interval = intervals[i],
		};
		struct prog *prog = prog_test_open(&options);

		run_repeatedly(prog, udp, many(), 1);
		assert_counted(prog, many());
	}
}

TEST(segments_of_a_buffer_are_sampled_one_by_one)
{
	static const struct layer tcp[] = {
		ETH, IP4, TCP(0x10), DATA(SEGMENTS * 60), {}
	};
	struct prog *prog = prog_test_open(&one_packet_of_100);

	run_repeatedly(prog, tcp, many() / SEGMENTS, SEGMENTS);
	assert_counted(prog, (uint64_t)(many() / SEGMENTS) * SEGMENTS);
}

/* As regular as the interval is: counting to 100 would always select the same flow. */
TEST(flows_in_turn_are_sampled_alike)
{
	struct prog *prog = prog_test_open(&one_packet_of_100);
	const struct prog_flows *flows;

	for (uint32_t round = 0; round < ROUNDS; round++)
		for (uint32_t port = 1; port <= FLOWS; port++)
			prog_test_tcp(prog, port, 0x10);
	flows = prog_test_flows(prog, 0);
	assert_int_equal(sum_of(flows).packets, (uint64_t)ROUNDS * FLOWS / 100);
	for (uint32_t port = 1; port <= FLOWS; port++) {
		struct flow_key key = prog_test_tcp_key(port);

		/* 20 expected, with a standard deviation of 4.5, and a longer tail upwards */
		assert_in_range(prog_test_tally(flows, &key)->packets, 1, 60);
	}
}

TEST(packets_that_cannot_be_parsed_are_not_sampled)
{
	static const struct layer arp[] = { ETH, ARP, {} };
	struct prog *prog = prog_test_open(&one_packet_of_100);

	run_repeatedly(prog, arp, 1000, 1);
	assert_int_equal(prog_counters(prog, 0).unparsed[UNPARSED_ARP].packets,
			 1000);
	assert_int_equal(prog_test_flows(prog, 0)->n, 0);
}

/* ---- Flows ------------------------------------------------------------------------ */

static const struct prog_options one_flow_of_4 = { .sampling = SAMPLE_FLOWS,
						   .sampling_interval = 4 };

/* Of each port, all packets were counted, or none; about a fourth of the ports were. */
static void assert_wholly(struct prog *prog, uint64_t packets)
{
	const struct prog_flows *flows = prog_test_flows(prog, 0);

	assert_in_range(flows->n, PORTS / 4 - 45, PORTS / 4 + 45);
	for (size_t i = 0; i < flows->n; i++) {
		assert_int_equal(flows->entries[i].tally.packets, packets);
		assert_true(is_flow_sampled(&flows->entries[i].key, 4));
	}
	assert_int_equal(prog_counters(prog, 0).sampled_out.packets,
			 (PORTS - flows->n) * packets);
}

TEST(flows_are_counted_wholly_or_not_at_all)
{
	struct prog *prog = prog_test_open(&one_flow_of_4);

	for (int round = 0; round < 3; round++)
		for (uint32_t port = 0; port < PORTS; port++) {
			const struct layer v6[] = {
				ETH, IP6, UDP_PORTS(port, 53), {}
			};

			prog_test_layers(prog, v6);
		}
	assert_wholly(prog, 3);
}

TEST(fragments_follow_their_datagram)
{
	enum { ID_LOW_BYTE = 5, ID_HIGH_BYTE = 4 };
	struct prog *prog = prog_test_open(&one_flow_of_4);

	for (uint32_t port = 0; port < PORTS; port++) {
		const struct layer first[] = { ETH,
					       IP4_FRAGMENT(IP4_MORE),
					       POKE(ID_HIGH_BYTE, port >> 8),
					       POKE(ID_LOW_BYTE, port & 0xff),
					       UDP_PORTS(port, 53),
					       DATA(PAYLOAD),
					       {} };
		const struct layer later[] = { ETH,
					       IP4_FRAGMENT(9),
					       POKE(ID_HIGH_BYTE, port >> 8),
					       POKE(ID_LOW_BYTE, port & 0xff),
					       NEXT(17),
					       DATA(PAYLOAD),
					       {} };

		prog_test_layers(prog, first);
		prog_test_layers(prog, later);
		prog_test_layers(prog, later);
	}
	assert_wholly(prog, 3);
}

/* The tunnel's own ports do not decide. */
TEST(flows_in_tunnels_are_sampled_by_what_is_inside)
{
	struct prog *prog = prog_test_open(&one_flow_of_4);

	for (uint32_t port = 0; port < PORTS; port++) {
		const struct layer vxlan[] = { ETH, IP4, VXLAN(3),
					       ETH, IP6, UDP_PORTS(port, 53),
					       {} };

		prog_test_layers(prog, vxlan);
	}
	assert_wholly(prog, 1);
}
