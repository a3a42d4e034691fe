/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a packet on its way out was counted on its way in. The kernel keeps with
 * a packet the interface of this namespace that it came in through (skb_iif, none
 * if it was made here), and user space says of which interfaces all packets that
 * come in are counted.
 */
#ifndef NETOBS_BPF_TRACK_ORIGINS_H
#define NETOBS_BPF_TRACK_ORIGINS_H

#include "bpf/config.h"
#include "bpf/maps.h"
#include "bpf/store/hash.h"

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

#endif
