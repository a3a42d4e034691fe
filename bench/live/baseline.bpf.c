// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What netobs is compared with, on the same hook: nothing at all, and the first published
 * agent, which sent user space a record of each packet.
 */
#define BPF_NO_PRESERVE_ACCESS_INDEX
#include "vmlinux.h"

#include "baseline.h"
#include "bpf/parse/headers.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { VERDICT_NEXT = -1 };

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24); /* as published */
} samples SEC(".maps");

__u64 overflows; /* packets for which the ring had no room */

/* Of IPv4 without options; anything else keeps a tuple of zeros. */
static __always_inline void read_tuple(const struct __sk_buff *skb,
				       struct packet_tuple *tuple)
{
	const struct ether_wire *eth = (void *)(long)skb->data;
	const struct ipv4_wire *ip = (const void *)(eth + 1);
	const struct ports_wire *ports = (const void *)(ip + 1);
	const void *end = (void *)(long)skb->data_end;

	__builtin_memset(tuple, 0, sizeof(*tuple));
	if ((const void *)(ports + 1) > end ||
	    eth->type != bpf_htons(ETHERTYPE_IPV4) || ip->version_ihl != 0x45)
		return;
	tuple->src = ip->src;
	tuple->dst = ip->dst;
	tuple->src_port = ports->src;
	tuple->dst_port = ports->dst;
	tuple->proto = ip->proto;
}

SEC("tc")
int baseline_v0(struct __sk_buff *skb)
{
	struct packet_sample *sample =
		bpf_ringbuf_reserve(&samples, sizeof(*sample), 0);

	if (!sample) {
		__sync_fetch_and_add(&overflows, 1);
		return VERDICT_NEXT;
	}
	read_tuple(skb, &sample->tuple);
	sample->time_ns = bpf_ktime_get_ns();
	sample->packets = skb->gso_segs ? skb->gso_segs : 1;
	sample->bytes = skb->len;
	bpf_ringbuf_submit(sample, 0);
	return VERDICT_NEXT;
}

SEC("tc")
int baseline_empty(struct __sk_buff *skb)
{
	return VERDICT_NEXT;
}
