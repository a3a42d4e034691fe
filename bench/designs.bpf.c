// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What netobs is compared with: programs that do nothing, and the least that the agent of the
 * published study does for a packet.
 */
#define BPF_NO_PRESERVE_ACCESS_INDEX
#include "vmlinux.h"

#include "bpf/parse/headers.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { VERDICT_NEXT = -1, EEXIST = 17 };

/* The key of published agents; IPv4 as ::ffff:a.b.c.d. */
struct flow_id {
	struct ip_addr src;
	struct ip_addr dst;
	__u16 src_port;
	__u16 dst_port;
	__u8 proto;
	__u8 icmp_type;
	__u8 icmp_code;
	__u8 reserved;
};

struct metrics {
	__u64 first_ns;
	__u64 last_ns;
	__u64 bytes;
	__u32 packets;
	__u16 flags;
	__u16 ethertype;
};

/* One packet. */
struct seen {
	struct flow_id id;
	__u16 flags;
	__u16 ethertype;
};

/* ---- The minimal parser: fixed offsets, as published agents have it -------- */

enum { TCP_FLAGS_OFFSET = 13 };

/* The packets of the benchmark are IPv4. */
static __always_inline bool parse_skb(const struct __sk_buff *skb,
				      struct seen *seen)
{
	const void *end = (void *)(long)skb->data_end;
	const struct ether_wire *eth = (void *)(long)skb->data;
	const struct ipv4_wire *ip = (const void *)(eth + 1);
	const struct ports_wire *ports = (const void *)(ip + 1);
	const __u8 *l4 = (const __u8 *)ports;

	if ((const void *)(ports + 1) > end ||
	    eth->type != bpf_htons(ETHERTYPE_IPV4))
		return false;
	seen->ethertype = ETHERTYPE_IPV4;
	seen->id.src.words[2] = seen->id.dst.words[2] = bpf_htonl(0xffff);
	seen->id.src.words[3] = ip->src;
	seen->id.dst.words[3] = ip->dst;
	seen->id.proto = ip->proto;
	seen->id.src_port = bpf_ntohs(ports->src);
	seen->id.dst_port = bpf_ntohs(ports->dst);
	if (ip->proto == IP_PROTO_TCP) {
		if ((const void *)(l4 + TCP_HEADER_LEN) > end)
			return false;
		seen->flags = l4[TCP_FLAGS_OFFSET];
	}
	return true;
}

/* ---- The design of the published study: user space sets the size --------------- */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, struct flow_id);
	__type(value, struct metrics);
} map_percpu_hash SEC(".maps");

/* No other CPU writes to it. */
static __always_inline void metrics_add(struct metrics *m,
					const struct __sk_buff *skb,
					const struct seen *seen, __u64 now)
{
	m->packets++;
	m->bytes += skb->len;
	m->last_ns = now;
	m->flags |= seen->flags;
}

SEC("tc")
int run_percpu_hash(struct __sk_buff *skb)
{
	struct metrics fresh = {}, *known;
	struct seen seen = {};
	__u64 now;

	if (!parse_skb(skb, &seen))
		return VERDICT_NEXT;
	now = bpf_ktime_get_ns();
	known = bpf_map_lookup_elem(&map_percpu_hash, &seen.id);
	if (!known) {
		fresh.first_ns = now;
		fresh.ethertype = seen.ethertype;
		metrics_add(&fresh, skb, &seen, now);
		/* Another CPU may have been faster. */
		if (bpf_map_update_elem(&map_percpu_hash, &seen.id, &fresh,
					BPF_NOEXIST) != -EEXIST)
			return VERDICT_NEXT;
		known = bpf_map_lookup_elem(&map_percpu_hash, &seen.id);
	}
	if (known)
		metrics_add(known, skb, &seen, now);
	return VERDICT_NEXT;
}

/* ---- Nothing at all ------------------------------------------------------------- */

SEC("tc")
int run_empty(struct __sk_buff *skb)
{
	return VERDICT_NEXT;
}

/* Another one that does nothing: what differs between the two is noise. */
SEC("tc")
int run_empty2(struct __sk_buff *skb)
{
	return VERDICT_NEXT;
}
