/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lookups for a packet before that of its flow. */
#ifndef NETOBS_BPF_TRACK_PACKET_H
#define NETOBS_BPF_TRACK_PACKET_H

#include "bpf/config.h"
#include "bpf/maps.h"
#include "bpf/parse/packet.h"
#include "bpf/store/hash.h"

/*
 * A packet on its way out may have been counted on its way in. The kernel keeps with
 * a packet the interface of this namespace that it came in through (skb_iif, none
 * if it was made here), and user space says of which interfaces all packets that
 * come in are counted.
 */

static __always_inline bool is_origin(__u32 ifindex)
{
	__u64 origin = origin_of(config_netns, ifindex);
	__u32 slot = origin_slot(config_netns, ifindex);
	const __u64 *first = bpf_map_lookup_elem(&origins, &slot);
	__u64 found = first ? READ_ONCE(*first) : 0;

	if ((found & ~ORIGIN_MORE) == origin)
		return true;
	return found & ORIGIN_MORE && bpf_map_lookup_elem(&more_origins, &origin);
}

/* Later fragments belong to the flow of the first one, when it was seen. */

static __always_inline void track_fragment(struct packet *pkt)
{
	struct fragment_key key = {
		.src = pkt->key.src,
		.dst = pkt->key.dst,
		.id = pkt->fragment_id,
		.vni = pkt->key.vni,
		.outer_hash = pkt->key.outer_hash ^
			      (__u32)pkt->key.outer_vlan << 16 ^ pkt->key.vlan,
		.netns = pkt->key.netns,
		.proto = pkt->fragment_proto,
		.tunnel = pkt->key.tunnel,
	};
	struct fragment_ports *known;

	if (pkt->fragment == FRAGMENT_FIRST) {
		struct fragment_ports ports = {
			.src_port = pkt->key.src_port,
			.dst_port = pkt->key.dst_port,
			.proto = pkt->key.proto,
		};

		bpf_map_update_elem(&fragments, &key, &ports, BPF_ANY);
		return;
	}
	known = bpf_map_lookup_elem(&fragments, &key);
	if (!known) {
		pkt->key.flags |= KEY_NO_TRANSPORT;
		return;
	}
	pkt->key.src_port = known->src_port;
	pkt->key.dst_port = known->dst_port;
	pkt->key.proto = known->proto;
}

#endif
