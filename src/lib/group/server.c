/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "server.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include <netobs/flow.h>

#include "base/hash.h"

static uint64_t hash_server(const struct netobs_flow *flow, enum flow_end end)
{
	uint64_t words[2], hash;

	memcpy(words, end == FLOW_SOURCE ? flow->src : flow->dst, sizeof(words));
	hash = hash_finish(words[0] + (end == FLOW_SOURCE ? flow->src_port :
							    flow->dst_port));
	hash = hash_finish(hash ^ words[1]);
	return hash ? hash : 1;
}

static bool is_known_server(const struct servers *servers, uint64_t hash)
{
	return servers->hashes[hash % SERVERS] == hash;
}

static bool is_multicast(const uint8_t addr[16])
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };

	return addr[0] == 0xff ||
	       (!memcmp(addr, v4, sizeof(v4)) && addr[12] >= 224);
}

static bool is_icmp_reply(const struct netobs_flow *flow)
{
	return flow->has & NETOBS_HAS_ICMP &&
	       flow->icmp_type == (flow->proto == IPPROTO_ICMPV6 ? 129 : 0);
}

/* Without a SYN: accepted a connection earlier, or has the lower port or address. */
static enum flow_end guess_server(const struct servers *servers,
				  const struct netobs_flow *flow)
{
	bool is_src_known = false, is_dst_known = false;
	bool is_src_lower = memcmp(flow->src, flow->dst, sizeof(flow->src)) < 0;

	if (flow->proto == IPPROTO_TCP) {
		is_src_known =
			is_known_server(servers, hash_server(flow, FLOW_SOURCE));
		is_dst_known = is_known_server(
			servers, hash_server(flow, FLOW_DESTINATION));
	}
	if (is_src_known != is_dst_known)
		return is_src_known ? FLOW_SOURCE : FLOW_DESTINATION;
	if (flow->src_port != flow->dst_port)
		is_src_lower = flow->src_port < flow->dst_port;
	return is_src_lower ? FLOW_SOURCE : FLOW_DESTINATION;
}

enum flow_end server_find(struct servers *servers, const struct netobs_flow *flow)
{
	const uint16_t syn = 0x02;

	if (flow->has & NETOBS_HAS_TCP &&
	    flow->tcp_combined & NETOBS_TCP_SYN_ACK) {
		uint64_t hash = hash_server(flow, FLOW_SOURCE);

		servers->hashes[hash % SERVERS] = hash;
		return FLOW_SOURCE;
	}
	if (flow->has & NETOBS_HAS_TCP && flow->tcp_flags & syn)
		return FLOW_DESTINATION;
	if (!(flow->has & NETOBS_HAS_PORTS))
		return is_icmp_reply(flow) ? FLOW_SOURCE : FLOW_DESTINATION;
	if (is_multicast(flow->dst))
		return FLOW_DESTINATION;
	return guess_server(servers, flow);
}
