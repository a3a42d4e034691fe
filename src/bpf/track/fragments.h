/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Later fragments belong to the flow of the first one, when it was seen. */
#ifndef NETOBS_BPF_TRACK_FRAGMENTS_H
#define NETOBS_BPF_TRACK_FRAGMENTS_H

#include "bpf/maps.h"
#include "bpf/parse/packet.h"

static __always_inline void track_fragment(struct packet *pkt)
{
	struct fragment_key key = {
		.src = pkt->key.src,
		.dst = pkt->key.dst,
		.id = pkt->fragment_id,
		.vni = pkt->key.vni,
		.outer_hash = pkt->key.outer_hash,
		.netns = pkt->key.netns,
		.proto = pkt->fragment_proto,
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
