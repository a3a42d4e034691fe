/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The whole parser: cursor in, struct packet out. Pure: no maps, no helpers,
 * no globals, so the same headers build for the host, where unit tests and the
 * fuzzer drive them.
 */
#ifndef NETOBS_BPF_PARSE_PARSE_H
#define NETOBS_BPF_PARSE_PARSE_H

#include "bpf/store/hash.h"
#include "ip.h"
#include "l4.h"
#include "link.h"
#include "tunnel.h"

/* IP headers. *@ret_room: transport bytes that they promise. */
static __always_inline int parse_ip(struct cursor *c, struct packet *pkt,
				    int type, __u32 *ret_room)
{
	__u32 start = cursor_offset(c), header;
	int ret;

	ret = type == ETHERTYPE_IPV4 ? parse_ipv4(c, pkt) : parse_ipv6(c, pkt);
	if (ret)
		return ret;
	if (!cursor_settle(c))
		return reject(UNPARSED_TOO_DEEP);
	if (pkt->key.proto == IP_PROTO_AH && pkt->fragment != FRAGMENT_LATER) {
		ret = parse_ah(c, pkt);
		if (ret)
			return ret;
	}

	pkt->header_end = cursor_offset(c);
	header = pkt->header_end - start;
	if (pkt->ip_len && pkt->ip_len < header)
		return reject(UNPARSED_BAD_HEADER);
	*ret_room = pkt->ip_len ? pkt->ip_len - header : ~0U;
	return 0;
}

/* From the IP header to the end of the transport header; see parse_l4(). */
static __always_inline int parse_network(struct cursor *c, struct packet *pkt,
					 int type)
{
	__u32 room;
	int ret = parse_ip(c, pkt, type, &room);

	if (ret || pkt->fragment == FRAGMENT_LATER)
		return ret;
	return parse_l4(c, pkt, room);
}

/* Make @pkt the flow of what @outer carries. */
static __always_inline int parse_inner(struct cursor *c, struct packet *pkt,
				       struct packet *outer,
				       enum tunnel_type tunnel,
				       const volatile struct hash_secret *secret)
{
	__u16 outermost = outer->key.outer_vlan ?: outer->key.vlan;
	int ret;

	pkt->key.vlan = 0;
	pkt->key.outer_vlan = 0;
	pkt->key.src_port = 0;
	pkt->key.dst_port = 0;
	pkt->key.flags &= ~KEY_IPV6;
	pkt->attrs.flow_label = 0;
	pkt->key.tunnel = tunnel;
	ret = parse_tunnel(c, pkt, tunnel);
	if (ret < 0 || !cursor_settle(c))
		return ret < 0 ? ret : reject(UNPARSED_TOO_DEEP);
	ret = parse_network(c, pkt, ret);
	if (ret < 0)
		return ret;
	/* Ethernet padding may look like a packet. */
	if (outer->ip_len && outer->ip_len < pkt->header_end - outer->l3_offset)
		return reject(UNPARSED_BAD_HEADER);

	name_tunnel(c->start, c->end, pkt, outer);
	pkt->ip_len = outer->ip_len;
	pkt->key.outer_vlan = outermost;
	pkt->outer_src = outer->key.src;
	pkt->outer_dst = outer->key.dst;
	pkt->outer_src_port = outer->key.src_port;
	pkt->outer_dst_port = outer->key.dst_port;
	/*
	 * The tunnel and its direction. The ports are left out: a VXLAN source port
	 * differs from inner flow to flow.
	 */
	pkt->key.outer_hash = hash_addrs(&outer->key, secret->outer);
	pkt->outer_check = hash_addrs(&outer->key, secret->outer_check);
	return ret;
}

/*
 * Parse one frame into @pkt. The caller has zeroed it, and set the observation point in the key and
 * tags that the kernel keeps beside the frame. Returns 0, PARSE_CUT or a rejection.
 *
 * A tunnel is opened once. If the packet in it cannot be parsed, the flow is that of the outer
 * tuple, and *@ret_cut says whether more bytes might have helped. @outer is scratch space. @secret:
 * of the hashes of tunnels.
 */
static __always_inline int
parse_packet(struct cursor *c, struct packet *pkt, struct packet *outer,
	     enum link_kind link, const struct tunnel_ports *ports,
	     const volatile struct hash_secret *secret, bool *ret_cut)
{
	enum tunnel_type tunnel;
	int ret;

	ret = link == LINK_ETHERNET ? parse_ether(c, pkt) : peek_ip(c);
	pkt->l3_offset = cursor_offset(c);
	if (ret < 0)
		return ret;
	if (!cursor_settle(c))
		return reject(UNPARSED_TOO_DEEP);
	ret = parse_network(c, pkt, ret);
	if (ret)
		return ret;

	tunnel = match_tunnel(pkt, ports);
	if (tunnel == TUNNEL_NONE)
		return 0;
	*outer = *pkt;
	ret = parse_inner(c, pkt, outer, tunnel, secret);
	if (ret >= 0)
		return ret;
	*pkt = *outer;
	*ret_cut = reject_reason(ret) == UNPARSED_SHORT;
	return 0;
}

/* The packet in a tunnel, as a frame of its own. */
struct carried {
	enum link_kind link;
	__u32 offset; /* of its first header */
	__u32 end;    /* where the outer IP header says; ~0: it does not */
};

/* The ports, and the rest of the header. */
static __always_inline int parse_udp(struct cursor *c, struct packet *pkt,
				     __u32 room)
{
	int ret = room < UDP_HEADER_LEN ? reject(UNPARSED_BAD_HEADER) :
					  parse_ports(c, pkt, UDP_HEADER_LEN);

	return ret || cursor_take(c, UDP_HEADER_LEN) ? ret :
						       reject(UNPARSED_SHORT);
}

/*
 * Find the packet that the outermost tunnel of a frame carries. Unlike parse_packet(), this does not
 * parse that packet: it may be ARP. @pkt is scratch space. Returns 0, or a rejection, also if the
 * frame has no tunnel.
 */
static __always_inline int parse_carried(struct cursor *c, struct packet *pkt,
					 enum link_kind link,
					 const struct tunnel_ports *ports,
					 struct carried *ret_carried)
{
	enum tunnel_type tunnel;
	__u32 l3_offset, room, unknown_zero;
	int type;

	type = link == LINK_ETHERNET ? parse_ether(c, pkt) : peek_ip(c);
	l3_offset = cursor_offset(c);
	if (type < 0 || !cursor_settle(c))
		return type < 0 ? type : reject(UNPARSED_TOO_DEEP);
	type = parse_ip(c, pkt, type, &room);
	if (type)
		return type;
	/* Whatever the headers were, one path goes on. */
	unknown_zero = cursor_unknown_zero(c);
	pkt->key.proto += unknown_zero;
	pkt->fragment += unknown_zero;
	pkt->ip_len += unknown_zero;
	room += unknown_zero;
	if (pkt->key.proto == IP_PROTO_UDP) {
		type = parse_udp(c, pkt, room);
		if (type)
			return type;
	}
	tunnel = match_tunnel(pkt, ports);
	if (tunnel == TUNNEL_NONE)
		return reject(UNPARSED_NOT_IP);
	type = parse_tunnel_header(c, pkt, tunnel);
	if (type < 0 || !cursor_settle(c))
		return type < 0 ? type : reject(UNPARSED_TOO_DEEP);
	type += unknown_zero;
	ret_carried->link = type == ETHERTYPE_TEB ? LINK_ETHERNET : LINK_NONE;
	if (type != ETHERTYPE_TEB && tunnel != TUNNEL_IPIP)
		type = parse_type(c, pkt, type); /* tags and labels in front of IP */
	if (type < 0 || !cursor_settle(c))
		return type < 0 ? type : reject(UNPARSED_TOO_DEEP);
	ret_carried->offset = cursor_offset(c);
	ret_carried->end = pkt->ip_len ? l3_offset + pkt->ip_len : ~0U;
	/* Ethernet padding may look like a packet. */
	if (ret_carried->end <= ret_carried->offset)
		return reject(UNPARSED_BAD_HEADER);
	return 0;
}

#endif
