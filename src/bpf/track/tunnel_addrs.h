/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The addresses of tunnels, kept apart from the flows in them. */
#ifndef NETOBS_BPF_TRACK_TUNNEL_ADDRS_H
#define NETOBS_BPF_TRACK_TUNNEL_ADDRS_H

#include "bpf/maps.h"
#include "bpf/parse/packet.h"

_Static_assert(__builtin_offsetof(struct packet, outer_dst) -
			       __builtin_offsetof(struct packet, outer_src) ==
		       __builtin_offsetof(struct tunnel_addrs, dst),
	       "a packet has them as the table does: no copy on the stack");

/* For every new entry: addresses that are in use are not the oldest. */
static __always_inline void track_tunnel(const struct packet *pkt)
{
	struct tunnel_key key = { pkt->key.outer_hash, pkt->outer_check };

	if (!bpf_map_lookup_elem(&tunnel_addrs, &key))
		bpf_map_update_elem(&tunnel_addrs, &key, &pkt->outer_src,
				    BPF_ANY);
}

#endif
