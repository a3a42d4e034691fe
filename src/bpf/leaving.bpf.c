// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queueing disciplines of this host give packets back: times of segments move on to then, see
 * rtt/leave.h. The tracepoint is silent where nothing waits: on devices without a discipline, and where a
 * packet passes by an empty one.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/maps.h"
#include "bpf/rtt/leave.h"
#include "bpf/store/conn_bodies.h"
#include "bpf/store/leavings.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum {
	LEAVING_LIST_MAX = 64, /* packets that a discipline gives back at once */
	IPV4_FRAGMENT = 0x1fff,
	NOT_LEAVING = -1,
};

/* An IP header and what is read of the next one. */
struct leaving_headers {
	__u8 bytes[80];
};

/* The numbers of a packet by which segments are noted. */
struct leaving_numbers {
	__u32 seq;
	__u32 ack;
	__u32 tsval;
};

/* This program times nothing else. */
static __always_inline __u64 read_exact_clock(const struct segment *segment)
{
	return segment->now;
}

/* @return the index of the packet's namespace, or NOT_LEAVING: it is not observed */
static __always_inline int netns_of(const struct sk_buff *skb)
{
	__u32 inode = BPF_CORE_READ(skb, dev, nd_net.net, ns.inum);
	const __u32 *index = bpf_map_lookup_elem(&leaving_netns, &inode);

	return index ? (int)*index : NOT_LEAVING;
}

/* A tunnel's device leaves the inner headers marked. Those of bridged packets are right, too. */
static __always_inline const void *network_of(const struct sk_buff *skb)
{
	const void *head = BPF_CORE_READ(skb, head);

	if (BPF_CORE_READ_BITFIELD_PROBED(skb, encapsulation))
		return head + BPF_CORE_READ(skb, inner_network_header);
	return head + BPF_CORE_READ(skb, network_header);
}

/*
 * @transport: its offset. @len: of the packet, from @headers on; 0: too long for the header. False: it is
 * neither a segment that may be timed nor an echo request. An acknowledgment has the numbers of the data
 * that follows it.
 */
static __always_inline bool read_transport(const struct leaving_headers *headers,
					   __u32 transport, __u32 len,
					   __u8 proto, __be32 address,
					   struct leaving_numbers *ret_numbers)
{
	const __u8 *at;
	__be32 words[7];

	if (transport > sizeof(headers->bytes) - sizeof(words))
		return false;
	at = headers->bytes + transport;
	__builtin_memcpy(words, at, sizeof(words));
	ret_numbers->seq = bpf_ntohl(words[1]);
	ret_numbers->ack = address;
	ret_numbers->tsval = 0;
	if (proto == IP_PROTO_TCP) {
		ret_numbers->ack = bpf_ntohl(words[2]);
		ret_numbers->tsval = bpf_ntohl(words[6]);
		return !len || len > transport + (at[12] >> 4) * 4 ||
		       at[13] & (TCP_SYN | TCP_FIN);
	}
	return (proto == IP_PROTO_ICMP && at[0] == ICMP_ECHO_KEY >> 8) ||
	       (proto == IP_PROTO_ICMPV6 && at[0] == ICMPV6_ECHO_KEY >> 8);
}

static __always_inline bool read_numbers(const struct sk_buff *skb,
					 struct leaving_numbers *ret_numbers)
{
	struct leaving_headers headers;
	__be32 address;
	__be16 len;

	if (bpf_probe_read_kernel(&headers, sizeof(headers), network_of(skb)))
		return false;
	if (headers.bytes[0] >> 4 == 4) {
		__builtin_memcpy(&address, headers.bytes + 16, sizeof(address));
		__builtin_memcpy(&len, headers.bytes + 2, sizeof(len));
		return read_transport(&headers, (headers.bytes[0] & 0xf) * 4,
				      bpf_ntohs(len), headers.bytes[9], address,
				      ret_numbers);
	}
	if (headers.bytes[0] >> 4 != 6)
		return false;
	__builtin_memcpy(&address, headers.bytes + 36, sizeof(address));
	__builtin_memcpy(&len, headers.bytes + 4, sizeof(len));
	return read_transport(&headers, 40, len ? 40 + bpf_ntohs(len) : 0,
			      headers.bytes[6], address, ret_numbers);
}

/* These have numbers only: the verifier walks them once. */
__noinline int leave_place(__u32 place, __u32 seq, __u32 tsval, __u64 ns)
{
	__u32 index = place >> LEAVING_INDEX_SHIFT;
	struct connection conn = {
		.head = bpf_map_lookup_elem(&conn_heads, &index),
	};

	if (!conn.head || conn.head->version & 1)
		return 0;
	conn.body = body_at(index);
	if (conn.body)
		leave(&conn, place, seq, tsval, ns);
	return 0;
}

__noinline int leave_packet(__u64 address)
{
	const struct sk_buff *skb = (const void *)address;
	const int netns = netns_of(skb);
	struct leaving_numbers numbers = { 0 };
	const struct leaving_bucket *bucket;

	if (netns == NOT_LEAVING || !read_numbers(skb, &numbers))
		return 0;
	bucket = leavings_of(numbers.seq, numbers.ack);
	if (!bucket)
		return 0;
	for (int i = 0; i < LEAVING_WAYS; i++) {
		const struct leaving *note = &bucket->of[i];

		if (note->seq != numbers.seq || note->ack != numbers.ack ||
		    note->netns != netns)
			continue;
		leave_place(note->place, numbers.seq, numbers.tsval,
			    bpf_ktime_get_boot_ns());
	}
	return 0;
}

SEC("raw_tp/qdisc_dequeue")
int netobs_leave(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 skb = ctx->args[3];

	for (int i = 0; i < LEAVING_LIST_MAX && skb; i++) {
		leave_packet(skb);
		skb = (__u64)BPF_CORE_READ((const struct sk_buff *)skb, next);
	}
	return 0;
}
