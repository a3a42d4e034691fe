// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queueing disciplines of this host give packets back: times of segments move on to then, see
 * rtt/leave.h. The tracepoint is silent where nothing waits: on devices without a discipline, and where a
 * packet passes by an empty one.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/maps.h"
#include "bpf/nullable.h"
#include "bpf/rtt/leave.h"
#include "bpf/store/conn_bodies.h"
#include "bpf/store/leavings.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum {
	LEAVING_LIST_MAX = 64, /* packets that a discipline gives back at once */
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

static __always_inline bool read_numbers(__u64 at,
					 struct leaving_numbers *ret_numbers)
{
	struct leaving_headers headers;
	__be32 address;
	__be16 len;

	if (bpf_probe_read_kernel(&headers, sizeof(headers), (const void *)at))
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
__noinline int leave_place(__u32 place, __u32 seq, __u32 tsval)
{
	__u32 index = place >> LEAVING_INDEX_SHIFT;
	struct connection conn = {
		.head = bpf_map_lookup_elem(&conn_heads, &index),
	};

	if (!conn.head || conn.head->version & 1)
		return 0;
	conn.body = body_at(index);
	if (conn.body)
		leave(&conn, place, seq, tsval, bpf_ktime_get_boot_ns());
	return 0;
}

/* @at: of the IP header. @inode: of the packet's namespace */
__noinline int leave_packet(__u64 at, __u32 inode)
{
	struct leaving_numbers numbers = { 0 };
	const struct leaving_bucket *bucket;
	const __u32 *netns;

	if (!read_numbers(at, &numbers))
		return 0;
	bucket = leavings_of(numbers.seq, numbers.ack);
	if (!bucket)
		return 0;
	for (int i = 0; i < LEAVING_WAYS; i++) {
		const struct leaving *note = &bucket->of[i];

		if (note->seq != numbers.seq || note->ack != numbers.ack)
			continue;
		netns = bpf_map_lookup_elem(&leaving_netns, &inode);
		if (netns && note->netns == *netns)
			leave_place(note->place, numbers.seq, numbers.tsval);
	}
	return 0;
}

/*
 * A tunnel's device leaves the inner headers marked. Those of bridged packets are right, too. A negated
 * address is a number to the verifier, which is what global functions take.
 */
static __always_inline __u64 network_of(const struct sk_buff *skb)
{
	__u64 negated = -(__u64)skb->head;

	barrier_var(negated);
	return (BPF_CORE_READ_BITFIELD(skb, encapsulation) ?
			skb->inner_network_header :
			skb->network_header) -
	       negated;
}

/* @skb: NULL if the discipline has no packet to give back */
SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(netobs_leave, const struct Qdisc *qdisc,
	     const struct netdev_queue *txq, int packets,
	     const struct sk_buff *skb)
{
	skb = nullable(skb);
	for (int i = 0; i < LEAVING_LIST_MAX && skb; i++) {
		leave_packet(network_of(skb), skb->dev->nd_net.net->ns.inum);
		skb = skb->next;
	}
	return 0;
}
