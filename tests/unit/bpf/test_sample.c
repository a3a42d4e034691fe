// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Which packets and flows are sampled: by chance, and by nothing but a flow's own tuple. */
#include "lib_test.h"

#include "bpf/sample.h"

#include <arpa/inet.h>

/* ---- Packets -------------------------------------------------------------------- */

static uint32_t draw(uint32_t interval)
{
	return (uint32_t)lrand48() % interval;
}

/* Each in turn, in buffers of some. */
static uint64_t take_all(uint32_t interval, uint64_t packets, uint32_t buffer)
{
	struct sampler sampler = { 0 };
	uint64_t sampled = 0;

	for (uint64_t at = 0; at < packets; at += buffer)
		sampled +=
			sampler_take(&sampler, interval, buffer, draw(interval));
	return sampled;
}

TEST(one_packet_of_each_window_is_sampled)
{
	static const uint32_t intervals[] = { 2, 3, 7, 100, 65536 };
	static const uint32_t buffers[] = { 1, 2, 5, 45, 1000, 65535 };

	for (size_t i = 0; i < ARRAY_SIZE(intervals); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(buffers); k++) {
			uint64_t windows = 60, n = windows * intervals[i];
			uint64_t whole =
				n / buffers[k] * buffers[k] / intervals[i];
			uint64_t sampled;

			if (n < buffers[k])
				continue;
			sampled = take_all(intervals[i],
					   n / buffers[k] * buffers[k],
					   buffers[k]);
			assert_in_range(sampled, whole, whole + 1);
		}
	}
}

TEST(each_place_in_a_window_is_as_likely)
{
	enum { INTERVAL = 8, WINDOWS = 80000 };
	uint32_t counts[INTERVAL] = { 0 };
	struct sampler sampler = { 0 };

	for (uint32_t i = 0; i < INTERVAL * WINDOWS; i++)
		counts[i % INTERVAL] +=
			sampler_take(&sampler, INTERVAL, 1, draw(INTERVAL));
	for (uint32_t i = 0; i < INTERVAL; i++) /* five standard deviations */
		assert_in_range(counts[i], WINDOWS / INTERVAL - 500,
				WINDOWS / INTERVAL + 500);
}

TEST(longest_window_is_32_bits)
{
	struct sampler sampler = { 0 };
	uint64_t sampled = 0;

	for (uint64_t i = 0; i < 1ULL << 32; i += 65535)
		sampled += sampler_take(&sampler, UINT32_MAX, 65535,
					UINT32_MAX / 2);
	assert_int_equal(sampled, 1);
}

/* ---- Flows ---------------------------------------------------------------------- */

static struct flow_key key_of(const char *src, const char *dst, uint8_t proto)
{
	struct flow_key key = { .src_port = 40000,
				.dst_port = 443,
				.proto = proto };

	assert_int_equal(inet_pton(AF_INET6, src, key.src.bytes), 1);
	assert_int_equal(inet_pton(AF_INET6, dst, key.dst.bytes), 1);
	return key;
}

static struct flow_key reverse_of(const struct flow_key *key)
{
	struct flow_key reverse = *key;

	reverse.src = key->dst;
	reverse.dst = key->src;
	reverse.src_port = key->dst_port;
	reverse.dst_port = key->src_port;
	return reverse;
}

/* Other hosts and versions depend on them: netobsctl-flows(8) has the hash. */
TEST(hash_is_the_documented_one)
{
	const struct flow_key v4 = key_of("::ffff:192.0.2.1",
					  "::ffff:198.51.100.2", IP_PROTO_TCP),
			      v6 = key_of("2001:db8::1", "2001:db8::2",
					  IP_PROTO_UDP);

	assert_int_equal(sample_hash(&v4), 0xee99c631ab253fd5ULL);
	assert_int_equal(sample_hash(&v6), 0xeb201c7627843d55ULL);
}

/* Both directions, requests and replies, and wherever it is seen. */
TEST(packets_of_a_flow_are_alike)
{
	struct flow_key key = key_of("2001:db8::1", "2001:db8::2", IP_PROTO_UDP);
	struct flow_key other;

	for (uint32_t port = 0; port < 65536; port++) {
		key.src_port = (uint16_t)port;
		other = reverse_of(&key);
		other.ifindex = 7;
		other.netns = 3;
		other.vlan = VLAN_PRESENT | 10;
		other.flags = KEY_EGRESS | KEY_IPV6 | KEY_AGAIN;
		other.tunnel = TUNNEL_VXLAN;
		other.vni = 5;
		other.outer_hash = 99;
		assert_int_equal(sample_hash(&key), sample_hash(&other));
	}
	key.src_port = 0;
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		key.proto = is_ipv6 ? IP_PROTO_ICMPV6 : IP_PROTO_ICMP;
		key.dst_port = is_ipv6 ? 128 << 8 : 8 << 8;
		other = reverse_of(&key);
		other.src_port = 0;
		other.dst_port = is_ipv6 ? 129 << 8 : 0;
		assert_int_equal(sample_hash(&key), sample_hash(&other));
	}
}

TEST(share_of_the_flows_is_sampled)
{
	static const uint32_t intervals[] = { 2, 10, 100 };
	struct flow_key key =
		key_of("::ffff:192.0.2.1", "::ffff:198.51.100.2", IP_PROTO_TCP);

	for (size_t i = 0; i < ARRAY_SIZE(intervals); i++) {
		uint32_t n = 0, wanted = (1 << 20) / intervals[i];

		for (uint32_t flow = 0; flow < 1 << 20; flow++) {
			key.src_port = (uint16_t)flow;
			key.src.bytes[15] = (uint8_t)(flow >> 16);
			n += is_flow_sampled(&key, intervals[i]);
		}
		assert_in_range(n, wanted - wanted / 20, wanted + wanted / 20);
	}
}

TEST(share_is_exact_for_the_largest_intervals)
{
	static const uint32_t intervals[] = {
		1, 2, 3, 100, 1 << 31, (1U << 31) + 1, UINT32_MAX
	};

	for (size_t i = 0; i < ARRAY_SIZE(intervals); i++) {
		uint64_t last = UINT64_MAX / intervals[i];

		assert_true(is_hash_sampled(0, intervals[i]));
		assert_true(is_hash_sampled(last - 1, intervals[i]));
		if (intervals[i] > 1)
			assert_false(is_hash_sampled(last + 1, intervals[i]));
	}
}

TEST(flows_of_a_larger_interval_are_among_those_of_a_smaller_one)
{
	struct flow_key key = key_of("2001:db8::1", "2001:db8::2", IP_PROTO_TCP);

	for (uint32_t port = 0; port < 65536; port++) {
		key.src_port = (uint16_t)port;
		if (is_flow_sampled(&key, 300))
			assert_true(is_flow_sampled(&key, 100));
		assert_true(is_flow_sampled(&key, 1));
	}
}
