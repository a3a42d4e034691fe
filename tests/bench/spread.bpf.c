// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * For the datapath benchmark: turns the one packet of BPF_PROG_TEST_RUN into
 * one of many flows, then runs the program that is measured.
 */
#include "vmlinux.h"

#include "parse/headers.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { VERDICT_NEXT = -1 };

const volatile __u32 config_flows = 1;

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} measured SEC(".maps");

struct udp4 {
	struct ipv4_wire ip;
	struct ports_wire ports;
};

/* NULL when the frame is too short. */
static __always_inline struct udp4 *udp4_of(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	struct udp4 *udp = data + sizeof(struct ether_wire);

	return (void *)(udp + 1) > (void *)(long)skb->data_end ? NULL : udp;
}

SEC("tc")
int spread(struct __sk_buff *skb)
{
	struct udp4 *udp = udp4_of(skb);

	if (!udp)
		return VERDICT_NEXT;
	udp->ip.src = bpf_get_prandom_u32() % config_flows;
	bpf_tail_call(skb, &measured, 0);
	return VERDICT_NEXT;
}

SEC("tc")
int nothing(struct __sk_buff *skb)
{
	return VERDICT_NEXT;
}

/* What published agents do per packet, at the least. */
struct tuple {
	__be32 src;
	__be32 dst;
	struct ports_wire ports;
	__u32 proto;
	__u32 ifindex;
};

struct usage {
	__u64 packets;
	__u64 bytes;
	__u64 first_ns;
	__u64 last_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1 << 21);
	__type(key, struct tuple);
	__type(value, struct usage);
} usages SEC(".maps");

SEC("tc")
int percpu_hash(struct __sk_buff *skb)
{
	struct udp4 *udp = udp4_of(skb);
	struct usage fresh = {}, *usage;
	struct tuple tuple = {};
	__u64 now;

	if (!udp)
		return VERDICT_NEXT;
	tuple.src = udp->ip.src;
	tuple.dst = udp->ip.dst;
	tuple.ports = udp->ports;
	tuple.proto = udp->ip.proto;
	tuple.ifindex = skb->ifindex;
	now = bpf_ktime_get_ns();
	usage = bpf_map_lookup_elem(&usages, &tuple);
	if (!usage) {
		fresh.packets = 1;
		fresh.bytes = skb->len;
		fresh.first_ns = now;
		fresh.last_ns = now;
		bpf_map_update_elem(&usages, &tuple, &fresh, BPF_ANY);
		return VERDICT_NEXT;
	}
	usage->packets++;
	usage->bytes += skb->len;
	usage->last_ns = now;
	return VERDICT_NEXT;
}
