/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Protocol and ports of a packet, which tell for most packets that they are of no traced connection. */
#ifndef NETOBS_BPF_TRACE_PLAIN_H
#define NETOBS_BPF_TRACE_PLAIN_H

#include "bpf/parse/headers.h"
#include "bpf/parse/parse.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* COMPAT(<6.2): the kernel has no bpf_rdonly_cast(), so that a call copies the headers. */
const volatile bool config_has_cast;

extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __weak __ksym;

enum {
	PLAIN_MAX = 40 + 14, /* IPv6, and TCP with its flags */
	TCP_FLAGS_AT = 13
};

struct plain {
	bool is_plain; /* has no fragments, options and extensions; else it needs the parser */
	__u8 proto;
	__u8 tcp_flags;
	__u16 src_port, dst_port;
	__u16 id; /* of ICMP */
};

static __always_inline __u32 transport_at(__u8 first, __u16 fragment)
{
	if (first >> 4 == 6)
		return sizeof(struct ipv6_wire);
	return first == 0x45 && !(fragment &
				  (IPV4_MORE_FRAGMENTS | IPV4_OFFSET_MASK)) ?
		       sizeof(struct ipv4_wire) :
		       0;
}

/* @ip, @ip6: the same header. @return the length of a plain one, or 0 */
static __always_inline __u32 note_network(const struct iphdr *ip,
					  const struct ipv6hdr *ip6,
					  struct plain *ret_plain)
{
	const __u8 first = *(const __u8 *)ip;

	ret_plain->proto = first >> 4 == 6 ? ip6->nexthdr : ip->protocol;
	return transport_at(first, bpf_ntohs(ip->frag_off));
}

/* Ports of UDP are in the same place, and the id of ICMP is where the sequence number is. */
static __always_inline void note_transport(const struct tcphdr *tcp,
					   struct plain *ret_plain)
{
	ret_plain->src_port = bpf_ntohs(tcp->source);
	ret_plain->dst_port = bpf_ntohs(tcp->dest);
	ret_plain->id = bpf_ntohl(tcp->seq) >> 16;
	ret_plain->tcp_flags = ((const __u8 *)tcp)[TCP_FLAGS_AT];
}

/* The kernel reads these without a call; an invalid address reads as zeroes. */
static __always_inline void cast_plain(const void *at, struct plain *ret_plain)
{
	const __u32 transport = note_network(
		bpf_rdonly_cast(at, bpf_core_type_id_kernel(struct iphdr)),
		bpf_rdonly_cast(at, bpf_core_type_id_kernel(struct ipv6hdr)),
		ret_plain);

	ret_plain->is_plain = transport;
	note_transport(bpf_rdonly_cast(at + transport,
				       bpf_core_type_id_kernel(struct tcphdr)),
		       ret_plain);
}

static __always_inline bool copy_plain(const void *at, struct plain *ret_plain)
{
	__u8 head[PLAIN_MAX];
	const void *ip = head;
	__u32 transport;

	if (bpf_probe_read_kernel(head, sizeof(head), at))
		return false;
	transport = note_network(ip, ip, ret_plain);
	ret_plain->is_plain = transport;
	note_transport(ip + (transport == sizeof(struct ipv6_wire) ?
				     sizeof(struct ipv6_wire) :
				     sizeof(struct ipv4_wire)),
		       ret_plain);
	return true;
}

/* @at: the IP header. @return false: it cannot be read */
static __always_inline bool read_plain(const void *at, struct plain *ret_plain)
{
	if (!config_has_cast)
		return copy_plain(at, ret_plain);
	cast_plain(at, ret_plain);
	return true;
}

#endif
