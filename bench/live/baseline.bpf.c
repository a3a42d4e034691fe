// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What netobs is compared with, on the same hook: nothing at all, the first published
 * agent, which sent user space a record of each packet, and host-INT, which does so
 * with what round-trip times are computed from.
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

/* NULL: there is no room, and that is counted. */
static __always_inline void *reserve_room(__u64 size)
{
	void *room = bpf_ringbuf_reserve(&samples, size, 0);

	if (!room)
		__sync_fetch_and_add(&overflows, 1);
	return room;
}

static __always_inline void read_sample(const struct __sk_buff *skb,
					struct packet_sample *sample)
{
	read_tuple(skb, &sample->tuple);
	sample->time_ns = bpf_ktime_get_ns();
	sample->packets = skb->gso_segs ? skb->gso_segs : 1;
	sample->bytes = skb->len;
}

SEC("tc")
int baseline_v0(struct __sk_buff *skb)
{
	struct packet_sample *sample = reserve_room(sizeof(*sample));

	if (!sample)
		return VERDICT_NEXT;
	read_sample(skb, sample);
	bpf_ringbuf_submit(sample, 0);
	return VERDICT_NEXT;
}

/* RFC 9293, 3.1. */
struct tcp_wire {
	struct ports_wire ports;
	__be32 seq;
	__be32 ack;
	__u8 offset;
	__u8 flags;
} WIRE;

/* Of TCP over IPv4 without options; anything else has neither data nor an acknowledgment. */
static __always_inline void read_segment(const struct __sk_buff *skb,
					 struct packet_report *report)
{
	const struct ether_wire *eth = (void *)(long)skb->data;
	const struct ipv4_wire *ip = (const void *)(eth + 1);
	const struct tcp_wire *tcp = (const void *)(ip + 1);
	__u32 len;

	report->seq = report->end = report->ack = report->has_ack = 0;
	if ((const void *)(tcp + 1) > (void *)(long)skb->data_end ||
	    report->sample.tuple.proto != IP_PROTO_TCP)
		return;
	len = bpf_ntohs(ip->total) - sizeof(*ip) - (tcp->offset >> 4) * 4;
	report->seq = bpf_ntohl(tcp->seq);
	report->end = report->seq + len + !!(tcp->flags & (TCP_SYN | TCP_FIN));
	report->ack = bpf_ntohl(tcp->ack);
	report->has_ack = !!(tcp->flags & TCP_ACK);
}

SEC("tc")
int baseline_report(struct __sk_buff *skb)
{
	struct packet_report *report = reserve_room(sizeof(*report));

	if (!report)
		return VERDICT_NEXT;
	read_sample(skb, &report->sample);
	read_segment(skb, report);
	bpf_ringbuf_submit(report, 0);
	return VERDICT_NEXT;
}

SEC("tc")
int baseline_empty(struct __sk_buff *skb)
{
	return VERDICT_NEXT;
}
