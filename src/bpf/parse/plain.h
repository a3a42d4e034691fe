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

/* What the kernel keeps beside the frame. */
struct arrival {
	__u32 ifindex;
	__u16 netns;
	__u16 vlan; /* as in struct flow_key */
	__u8 flags; /* enum flow_key_flag */
};

/* What goes into the packet in the end. */
struct plain {
	__u64 ports; /* where they are in their lane of the key */
	__u8 proto;
	__u8 flags;
	struct flow_attrs attrs;
	__u32 l4_offset;
	__u32 l4_len; /* what the IP header says */
};

static __always_inline const __u8 *plain_bytes(const struct cursor *c,
					       __u32 offset, __u32 len)
{
	const __u8 *p = c->start + offset;

	return p + len > c->end ? NULL : p;
}

static __always_inline bool plain_ipv4(const struct cursor *c,
				       struct packet *pkt, struct plain *plain)
{
	const struct ipv4_wire *ip = (const void *)plain_bytes(
		c, sizeof(struct ether_wire), sizeof(*ip));
	__u32 total;

	if (!ip || ip->version_ihl != 0x45 ||
	    ip->fragment & bpf_htons(IPV4_OFFSET_MASK | IPV4_MORE_FRAGMENTS))
		return false;
	total = bpf_ntohs(ip->total);
	if (total < sizeof(*ip))
		return false;
	pkt->key.src.lanes[0] = 0;
	pkt->key.src.lanes[1] = (__u64)ip->src << 32 | 0xffff0000;
	pkt->key.dst.lanes[0] = 0;
	pkt->key.dst.lanes[1] = (__u64)ip->dst << 32 | 0xffff0000;
	pkt->ip_len = total;
	set_ttl(&plain->attrs, ip->ttl);
	set_tos(&plain->attrs, ip->tos);
	plain->proto = ip->proto;
	plain->l4_offset = sizeof(struct ether_wire) + sizeof(*ip);
	plain->l4_len = total - sizeof(*ip);
	return true;
}

static __always_inline bool plain_ipv6(const struct cursor *c,
				       struct packet *pkt, struct plain *plain)
{
	const struct ipv6_wire *ip = (const void *)plain_bytes(
		c, sizeof(struct ether_wire), sizeof(*ip));
	__u32 first, payload;

	if (!ip)
		return false;
	first = bpf_ntohl(ip->version_class_flow);
	payload = bpf_ntohs(ip->payload);
	if (first >> 28 != 6 || !payload)
		return false;
	__builtin_memcpy(&pkt->key.src, ip->src, sizeof(pkt->key.src));
	__builtin_memcpy(&pkt->key.dst, ip->dst, sizeof(pkt->key.dst));
	pkt->ip_len = payload + sizeof(*ip);
	set_ttl(&plain->attrs, ip->hop_limit);
	set_tos(&plain->attrs, first >> LABEL_BITS);
	plain->attrs.flow_label = first & LABEL_MASK;
	plain->flags |= KEY_IPV6;
	plain->proto = ip->next;
	plain->l4_offset = sizeof(struct ether_wire) + sizeof(*ip);
	plain->l4_len = payload;
	return true;
}

static __always_inline bool plain_l4(const struct cursor *c, struct packet *pkt,
				     const struct tunnel_ports *tunnels,
				     struct plain *plain)
{
	const struct ports_wire *ports =
		(const void *)plain_bytes(c, plain->l4_offset, UDP_HEADER_LEN);
	__u32 header = UDP_HEADER_LEN;
	__u16 dst_port;

	if (!ports)
		return false;
	dst_port = bpf_ntohs(ports->dst);
	if (plain->proto == IP_PROTO_TCP) {
		const __u8 *tcp = plain_bytes(c, plain->l4_offset, TCP_FLAGS_END);

		if (!tcp || plain->l4_len < TCP_HEADER_LEN)
			return false;
		header = (tcp[12] >> 4) * 4;
		if (header < TCP_HEADER_LEN)
			return false;
		plain->attrs.marks |= tcp_marks((tcp[12] & 0xf) << 8 | tcp[13]);
	} else if (plain->proto != IP_PROTO_UDP ||
		   plain->l4_len < UDP_HEADER_LEN ||
		   is_tunnel_port(tunnels, dst_port)) {
		return false;
	}
	plain->ports = (__u64)bpf_ntohs(ports->src) << 32 | (__u64)dst_port << 48;
	pkt->header_end = plain->l4_offset + header;
	return true;
}

/* False: not that plain; @pkt may have changed. Else all of it is set. */
static __always_inline bool parse_plain(const struct cursor *c,
					struct packet *pkt,
					const struct arrival *arrival,
					const struct tunnel_ports *tunnels)
{
	const struct ether_wire *eth =
		(const void *)plain_bytes(c, 0, sizeof(*eth));
	struct plain plain = {
		.flags = arrival->flags,
		.attrs.has_mac = 1,
	};
	__u64 *lanes = (__u64 *)&pkt->key;

	if (!eth)
		return false;
	if (eth->type == bpf_htons(ETHERTYPE_IPV4)) {
		if (!plain_ipv4(c, pkt, &plain))
			return false;
	} else if (eth->type != bpf_htons(ETHERTYPE_IPV6) ||
		   !plain_ipv6(c, pkt, &plain)) {
		return false;
	}
	if (!plain_l4(c, pkt, tunnels, &plain))
		return false;

	lanes[4] = arrival->ifindex | plain.ports;
	lanes[5] = arrival->vlan | (__u64)arrival->netns << 32 |
		   (__u64)plain.proto << 48 | (__u64)plain.flags << 56;
	lanes[6] = 0;
	pkt->l3_offset = sizeof(*eth);
	pkt->attrs = plain.attrs;
	pkt->unsent = 0;
	pkt->fragment = FRAGMENT_NONE;
	return true;
}

#endif
