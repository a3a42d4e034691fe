/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The addresses of tunnels, kept apart from the flows in them. */
#ifndef NETOBS_BPF_TRACK_TUNNEL_ADDRS_H
#define NETOBS_BPF_TRACK_TUNNEL_ADDRS_H

#include "bpf/maps.h"
#include "bpf/parse/packet.h"

/* For every new entry: addresses that are in use are not the oldest. */
static __always_inline void track_tunnel(const struct packet *pkt)
{
	struct tunnel_key key = { pkt->key.outer_hash, pkt->outer_check };
	struct tunnel_addrs addrs;

	if (bpf_map_lookup_elem(&tunnel_addrs, &key))
		return;
	addrs.src = pkt->outer_src;
	addrs.dst = pkt->outer_dst;
	bpf_map_update_elem(&tunnel_addrs, &key, &addrs, BPF_ANY);
}

#endif
