/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The plain frame: Ethernet, IPv4 without options or IPv6 without extension
 * headers, TCP or UDP, no fragment and no tunnel. Nearly all frames are, and the
 * general parser takes three times as long for them. It says the same of each,
 * which unit tests and the fuzzer hold; here nothing is refused, only left.
 *
 * The key is put together in registers and stored as 64-bit lanes: it is read
 * as such again at once, and processors wait where a load covers several
 * stores. Little-endian, as the machines that netobs is built for.
 */
#ifndef NETOBS_BPF_PARSE_PLAIN_H
#define NETOBS_BPF_PARSE_PLAIN_H

#include "ip.h"
#include "l4.h"
#include "tunnel.h"

/* Metadata that the kernel keeps beside the frame. */
struct arrival {
	__u32 ifindex;
	__u16 netns;
	__u16 vlan; /* as in struct flow_key */
	__u8 flags; /* enum flow_key_flag */
};

/* Positions of the headers, and values for the packet's words. */
struct plain {
	const __u8 *l4;
	const __u8 *end;
	__u32 l4_offset;
	__u32 l4_len; /* by the IP header */
	__u8 proto;
	__u8 flags;
};

/* Set the attributes as set_tos() and set_ttl() do, and has_mac. */
static __always_inline void plain_set_attrs(struct packet *pkt, __u32 marks,
					    __u32 flow_label, __u8 tos, __u8 ttl)
{
	__u32 *words = (__u32 *)&pkt->attrs;

	words[0] = marks | 1U << (MARK_ECN_SHIFT + (tos & 3));
	words[1] = flow_label;
	words[2] = tos >> 2 | ttl * 0x010100U | 1U << 24;
}

/* Set the key, except the addresses, and the end of the headers. *@ret_marks: the marks of TCP. */
static __always_inline bool plain_l4(struct packet *pkt,
				     const struct arrival *arrival,
				     const struct tunnel_ports *tunnels,
				     const struct plain *plain, __u32 *ret_marks)
{
	const __u8 *l4 = plain->l4;
	__u64 ports = bpf_ntohl(((const struct both_ports_wire *)l4)->ports);
	__u64 *lanes = (__u64 *)&pkt->key;
	__u32 header = UDP_HEADER_LEN;

	*ret_marks = 0;
	if (plain->proto == IP_PROTO_TCP) {
		if (l4 + TCP_FLAGS_END > plain->end ||
		    plain->l4_len < TCP_HEADER_LEN)
			return false;
		header = (l4[12] >> 4) * 4;
		if (header < TCP_HEADER_LEN)
			return false;
		*ret_marks = tcp_marks((l4[12] & 0xf) << 8 | l4[13]);
	} else if (plain->proto != IP_PROTO_UDP ||
		   plain->l4_len < UDP_HEADER_LEN ||
		   is_tunnel_port(tunnels, ports)) {
		return false;
	}
	lanes[4] = arrival->ifindex | ports << 48 | ports >> 16 << 32;
	lanes[5] = arrival->vlan | (__u64)arrival->netns << 32 |
		   (__u64)plain->proto << 48 | (__u64)plain->flags << 56;
	lanes[6] = 0;
	pkt->header_end = plain->l4_offset + header;
	return true;
}

static __always_inline bool plain_ipv4(const struct cursor *c, struct packet *pkt,
				       const struct arrival *arrival,
				       const struct tunnel_ports *tunnels)
{
	const struct ipv4_wire *ip =
		(const void *)(c->start + sizeof(struct ether_wire));
	struct plain plain = {
		.l4 = (const void *)(ip + 1),
		.end = c->end,
		.l4_offset = sizeof(struct ether_wire) + sizeof(*ip),
		.flags = arrival->flags,
	};
	__u32 total, marks;

	if (plain.l4 + UDP_HEADER_LEN > c->end || ip->version_ihl != 0x45 ||
	    ip->fragment & bpf_htons(IPV4_OFFSET_MASK | IPV4_MORE_FRAGMENTS))
		return false;
	total = bpf_ntohs(ip->total);
	plain.l4_len = total - sizeof(*ip);
	plain.proto = ip->proto;
	if (total < sizeof(*ip) ||
	    !plain_l4(pkt, arrival, tunnels, &plain, &marks))
		return false;
	pkt->key.src.lanes[0] = 0;
	pkt->key.src.lanes[1] = (__u64)ip->src << 32 | 0xffff0000;
	pkt->key.dst.lanes[0] = 0;
	pkt->key.dst.lanes[1] = (__u64)ip->dst << 32 | 0xffff0000;
	pkt->ip_len = total;
	plain_set_attrs(pkt, marks, 0, ip->tos, ip->ttl);
	return true;
}

static __always_inline bool plain_ipv6(const struct cursor *c, struct packet *pkt,
				       const struct arrival *arrival,
				       const struct tunnel_ports *tunnels)
{
	const struct ipv6_wire *ip =
		(const void *)(c->start + sizeof(struct ether_wire));
	struct plain plain = {
		.l4 = (const void *)(ip + 1),
		.end = c->end,
		.l4_offset = sizeof(struct ether_wire) + sizeof(*ip),
		.flags = arrival->flags | KEY_IPV6,
	};
	__u32 first, payload, marks;

	if (plain.l4 + UDP_HEADER_LEN > c->end)
		return false;
	first = bpf_ntohl(ip->version_class_flow);
	payload = bpf_ntohs(ip->payload);
	plain.l4_len = payload;
	plain.proto = ip->next;
	if (first >> 28 != 6 || !payload ||
	    !plain_l4(pkt, arrival, tunnels, &plain, &marks))
		return false;
	__builtin_memcpy(&pkt->key.src, ip->src, sizeof(pkt->key.src));
	__builtin_memcpy(&pkt->key.dst, ip->dst, sizeof(pkt->key.dst));
	pkt->ip_len = payload + sizeof(*ip);
	plain_set_attrs(pkt, marks, first & LABEL_MASK, first >> LABEL_BITS,
			ip->hop_limit);
	return true;
}

/* False: not that plain; @pkt may have changed. Else all of it is set. */
static __always_inline bool parse_plain(const struct cursor *c,
					struct packet *pkt,
					const struct arrival *arrival,
					const struct tunnel_ports *tunnels)
{
	const struct ether_wire *eth = (const void *)c->start;

	if (c->start + sizeof(*eth) > c->end)
		return false;
	if (eth->type == bpf_htons(ETHERTYPE_IPV4)) {
		if (!plain_ipv4(c, pkt, arrival, tunnels))
			return false;
	} else if (eth->type != bpf_htons(ETHERTYPE_IPV6) ||
		   !plain_ipv6(c, pkt, arrival, tunnels)) {
		return false;
	}
	pkt->l3_offset = sizeof(*eth);
	pkt->unsent = 0;
	pkt->fragment = FRAGMENT_NONE;
	return true;
}

#endif
