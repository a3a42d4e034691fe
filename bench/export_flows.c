// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "export_flows.h"

#include "base/util.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

static const struct netobs_point points[] = {
	{ .ifindex = 2,
	  .netns_inode = 4026531840,
	  .direction = NETOBS_INGRESS,
	  .name = "eth0" },
	{ .ifindex = 17,
	  .netns_inode = 4026532301,
	  .direction = NETOBS_EGRESS,
	  .name = "veth1a2b3c4" },
};

/* Numbers without a pattern: Marsaglia, Xorshift RNGs, 2003. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void make_address(uint8_t address[16], bool is_ipv6, uint64_t *random)
{
	uint64_t bits[2] = { next_random(random), next_random(random) };
	static const uint8_t ipv4[12] = { [10] = 0xff, 0xff },
			     ipv6[4] = { 0x20, 0x01, 0x0d, 0xb8 };

	memcpy(address, bits, sizeof(bits));
	if (is_ipv6)
		memcpy(address, ipv6, sizeof(ipv6));
	else
		memcpy(address, ipv4, sizeof(ipv4));
}

static void make_flow(struct netobs_flow *flow, uint32_t i, uint64_t *random)
{
	const int64_t start = 1793000000 * NSEC_PER_SEC;
	bool is_ipv6 = i % 2, is_udp = i % 8 == 7;

	*flow = (struct netobs_flow){
		.sz = sizeof(*flow),
		.has = NETOBS_HAS_PORTS | NETOBS_HAS_MAC,
		.start_ns = start + (int64_t)(next_random(random) % NSEC_PER_SEC),
		.packets = 1 + next_random(random) % 1000,
		.src_port = (uint16_t)next_random(random),
		.dst_port = 443,
		.ethertype = is_ipv6 ? 0x86dd : 0x0800,
		.proto = is_udp ? IPPROTO_UDP : IPPROTO_TCP,
		.ttl_min = 64,
		.ttl_max = 64,
		.end_reason = NETOBS_END_IDLE,
		.src_mac = { 2, 0, 0, 0, 0, (uint8_t)i },
		.dst_mac = { 2, 0, 0, 0, 1, (uint8_t)i },
		.n_points = 1 + i / 2 % 2,
		.point_size = sizeof(struct netobs_point),
		.points = points,
	};
	if (!is_udp) {
		flow->has |= NETOBS_HAS_TCP;
		flow->tcp_flags = 0x1b;
	}
	flow->end_ns = flow->start_ns + 5 * NSEC_PER_SEC;
	flow->bytes = flow->packets * 700;
	flow->l2_bytes = flow->packets * 714;
	make_address(flow->src, is_ipv6, random);
	make_address(flow->dst, is_ipv6, random);
}

struct netobs_flow *export_flows_make(uint32_t n)
{
	struct netobs_flow *flows = calloc(n, sizeof(*flows));
	uint64_t random = 88172645463325252ULL;

	for (uint32_t i = 0; flows && i < n; i++)
		make_flow(&flows[i], i, &random);
	return flows;
}
