/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "keys.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include <netobs/flow.h>

#include "base/hash.h"
#include "base/conversation.h"

static uint64_t hash_server(const struct netobs_flow *flow, enum server_end end)
{
	uint64_t words[2], hash;

	memcpy(words, end == SERVER_SOURCE ? flow->src : flow->dst,
	       sizeof(words));
	hash = hash_finish(words[0] + (end == SERVER_SOURCE ? flow->src_port :
							      flow->dst_port));
	hash = hash_finish(hash ^ words[1]);
	return hash ? hash : 1;
}

static bool is_known_server(const struct servers *servers, uint64_t hash)
{
	return servers->hashes[hash % SERVERS] == hash;
}

/* Guess without a SYN: the end that accepted a connection earlier, or has the lower port or address. */
static enum server_end guess_server(const struct servers *servers,
				    const struct netobs_flow *flow)
{
	bool is_src_known = false, is_dst_known = false;

	if (flow->proto == IPPROTO_TCP) {
		is_src_known = is_known_server(servers,
					       hash_server(flow, SERVER_SOURCE));
		is_dst_known = is_known_server(
			servers, hash_server(flow, SERVER_DESTINATION));
	}
	if (is_src_known != is_dst_known)
		return is_src_known ? SERVER_SOURCE : SERVER_DESTINATION;
	return server_by_port(flow->src, flow->src_port, flow->dst,
			      flow->dst_port);
}

static enum server_end find_end(struct servers *servers,
				const struct netobs_flow *flow)
{
	const enum server_end end = server_of_flow(flow);

	if (end == SERVER_SOURCE && flow->has & NETOBS_HAS_TCP) {
		const uint64_t hash = hash_server(flow, SERVER_SOURCE);

		servers->hashes[hash % SERVERS] = hash;
	}
	return end ?: guess_server(servers, flow);
}

enum flow_end server_find(struct servers *servers, const struct netobs_flow *flow)
{
	return find_end(servers, flow) == SERVER_SOURCE ? FLOW_SOURCE :
							  FLOW_DESTINATION;
}
