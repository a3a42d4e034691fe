/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of segments that may be in a queue of this host: see rtt/leave.h. */
#ifndef NETOBS_BPF_STORE_LEAVINGS_H
#define NETOBS_BPF_STORE_LEAVINGS_H

#include "bpf/maps.h"
#include "hash.h"

const volatile __u32 config_leaving_buckets = 1;

/* NULL: user space sized the array wrongly. */
static __always_inline struct leaving_bucket *leavings_of(__u32 seq, __u32 ack)
{
	__u32 hash = (seq ^ ack << 16) * 0x9e3779b1U;
	__u32 at = scale_hash(hash, config_leaving_buckets);

	return bpf_map_lookup_elem(&leavings, &at);
}

#endif
