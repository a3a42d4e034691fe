/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * IP headers, up to the transport header: addresses, protocol, fragment state.
 * Returns 0, or a rejection.
 */
#ifndef NETOBS_BPF_PARSE_IP_H
#define NETOBS_BPF_PARSE_IP_H

#include "packet.h"

enum {
	IPV6_EXT_DEPTH = 8,
	IPV4_MORE_FRAGMENTS = 0x2000,
	IPV4_OFFSET_MASK = 0x1fff,
	IPV6_MORE_FRAGMENTS = 0x0001,
	IPV6_OFFSET_MASK = 0xfff8,
};

static __always_inline void addr_from_v4(struct ip_addr *addr, __be32 v4)
{
	addr->lanes[0] = 0;
	addr->words[2] = bpf_htonl(0xffff);
	addr->words[3] = v4;
}

static __always_inline void set_tos(struct flow_attrs *attrs, __u8 tos)
{
	attrs->dscp = tos >> 2;
	attrs->marks = 1 << (MARK_ECN_SHIFT + (tos & 3));
}

static __always_inline void set_ttl(struct flow_attrs *attrs, __u8 ttl)
{
	attrs->ttl_min = ttl;
	attrs->ttl_max = ttl;
}

static __always_inline __u8 fragment_kind(__u16 offset, __u16 more)
{
	if (offset)
		return FRAGMENT_LATER;
	return more ? FRAGMENT_FIRST : FRAGMENT_NONE;
}

static __always_inline int parse_ipv4(struct cursor *c, struct packet *pkt)
{
	const struct ipv4_wire *ip = cursor_take(c, sizeof(*ip));
	__u16 fragment, total;
	__u32 header;

	if (!ip)
		return reject(UNPARSED_SHORT);
	header = (ip->version_ihl & 0xf) * 4;
	total = bpf_ntohs(ip->total);
	/* A length of 0 is a packet over 64 KiB before segmentation. */
	if (ip->version_ihl >> 4 != 4 || header < sizeof(*ip) ||
	    (total && total < header))
		return reject(UNPARSED_BAD_HEADER);
	if (!cursor_take(c, header - sizeof(*ip)))
		return reject(UNPARSED_SHORT);

	addr_from_v4(&pkt->key.src, ip->src);
	addr_from_v4(&pkt->key.dst, ip->dst);
	pkt->key.proto = ip->proto;
	pkt->ip_len = total;
	set_ttl(&pkt->attrs, ip->ttl);
	set_tos(&pkt->attrs, ip->tos);

	fragment = bpf_ntohs(ip->fragment);
	pkt->fragment = fragment_kind(fragment & IPV4_OFFSET_MASK,
				      fragment & IPV4_MORE_FRAGMENTS);
	pkt->fragment_id = ip->id;
	pkt->fragment_proto = ip->proto;
	return 0;
}

static __always_inline bool is_extension(__u8 proto)
{
	switch (proto) {
	case IP_PROTO_HOPOPTS:
	case IP_PROTO_ROUTING:
	case IP_PROTO_FRAGMENT:
	case IP_PROTO_AH:
	case IP_PROTO_DSTOPTS:
		return true;
	default:
		return false;
	}
}

/* All of an extension header beyond its first 8 bytes. */
static __always_inline __u32 extension_rest(__u8 proto, __u8 len)
{
	if (proto == IP_PROTO_FRAGMENT)
		return 0;
	/* RFC 4302, 2.2: AH counts 32-bit words, minus 2; others 64-bit, minus 1. */
	return proto == IP_PROTO_AH ? len * 4 : len * 8;
}

/* Claim a header as long as it says that it is. */
static __always_inline int take_extension(struct cursor *c, __u8 proto,
					  const struct ext_wire **ret_ext)
{
	const struct ext_wire *ext = cursor_take(c, sizeof(*ext));
	__u32 rest;

	if (!ext)
		return reject(UNPARSED_SHORT);
	rest = extension_rest(proto, ext->len);
	/* Check this before the end is looked for, which need not be in reach. */
	if (cursor_offset(c) + rest > CURSOR_LIMIT)
		return reject(UNPARSED_TOO_DEEP);
	if (!cursor_take(c, rest))
		return reject(UNPARSED_SHORT);
	if (!cursor_settle(c))
		return reject(UNPARSED_TOO_DEEP);
	*ret_ext = ext;
	return 0;
}

static __always_inline void mark_fragment(struct packet *pkt,
					  const struct fragment_wire *fragment)
{
	__u16 bits = bpf_ntohs(fragment->offset_flags);

	pkt->fragment = fragment_kind(bits & IPV6_OFFSET_MASK,
				      bits & IPV6_MORE_FRAGMENTS);
	pkt->fragment_id = fragment->id;
}

/* The one of them that IPv4 has: what follows is in clear (RFC 4302, 3.1.1). */
static __always_inline int parse_ah(struct cursor *c, struct packet *pkt)
{
	const struct ext_wire *ah;
	int ret = take_extension(c, IP_PROTO_AH, &ah);

	if (!ret)
		pkt->key.proto = ah->next;
	return ret;
}

static __always_inline int parse_extensions(struct cursor *c,
					    struct packet *pkt, __u8 proto)
{
	for (int i = 0; i < IPV6_EXT_DEPTH; i++) {
		const struct ext_wire *ext;
		bool stop;
		int ret;

		if (!is_extension(proto))
			break;
		ret = take_extension(c, proto, &ext);
		if (ret)
			return ret;
		if (proto == IP_PROTO_FRAGMENT)
			mark_fragment(pkt, (const void *)ext);
		if (proto == IP_PROTO_ROUTING)
			pkt->routing = (const __u8 *)ext - c->start;
		stop = pkt->fragment == FRAGMENT_LATER;
		proto = ext->next;
		if (stop)
			break;
	}
	pkt->key.proto = proto;
	if (is_extension(proto) && pkt->fragment != FRAGMENT_LATER)
		return reject(UNPARSED_TOO_DEEP);
	return 0;
}

/*
 * Hop-by-hop options that hold a jumbo payload (RFC 2675, 2) and nothing else:
 * Linux puts them in front of what TSO will cut up or GRO put together, and
 * never sends them; see ipv6_has_hopopt_jumbo(), 5.19 and later.
 */
static __always_inline void mark_jumbo(const struct cursor *c, struct packet *pkt)
{
	struct cursor ahead = *c;
	const struct ext_wire *ext = cursor_take(&ahead, sizeof(*ext));

	if (ext && ext->next == IP_PROTO_TCP && !ext->len &&
	    ext->body[0] == 0xc2 && ext->body[1] == 4)
		pkt->unsent = sizeof(*ext);
}

static __always_inline int parse_ipv6(struct cursor *c, struct packet *pkt)
{
	const struct ipv6_wire *ip = cursor_take(c, sizeof(*ip));
	__u32 first;
	__u16 payload;

	if (!ip)
		return reject(UNPARSED_SHORT);
	first = bpf_ntohl(ip->version_class_flow);
	if (first >> 28 != 6)
		return reject(UNPARSED_BAD_HEADER);

	__builtin_memcpy(&pkt->key.src, ip->src, sizeof(pkt->key.src));
	__builtin_memcpy(&pkt->key.dst, ip->dst, sizeof(pkt->key.dst));
	pkt->key.flags |= KEY_IPV6;
	/* No payload length: a packet over 64 KiB, unless nothing follows. */
	payload = bpf_ntohs(ip->payload);
	pkt->ip_len =
		payload || ip->next == IP_PROTO_NONE ? payload + sizeof(*ip) : 0;
	set_ttl(&pkt->attrs, ip->hop_limit);
	set_tos(&pkt->attrs, first >> LABEL_BITS);
	pkt->attrs.flow_label = first & LABEL_MASK;
	pkt->fragment = FRAGMENT_NONE;
	pkt->fragment_proto = 0;
	if (!pkt->ip_len && ip->next == IP_PROTO_HOPOPTS)
		mark_jumbo(c, pkt);
	return parse_extensions(c, pkt, ip->next);
}

#endif
