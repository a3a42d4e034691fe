/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses a frame up to its network header: Ethernet, VLAN tags, PPPoE, MPLS.
 * Returns the ethertype of the network header, or a rejection.
 */
#ifndef NETOBS_BPF_PARSE_LINK_H
#define NETOBS_BPF_PARSE_LINK_H

#include "packet.h"

enum { VLAN_DEPTH = 3, MPLS_DEPTH = 8 };

static __always_inline bool is_vlan(int type)
{
	return type == ETHERTYPE_8021Q || type == ETHERTYPE_8021AD ||
	       type == ETHERTYPE_QINQ;
}

static __always_inline bool is_mpls(int type)
{
	return type == ETHERTYPE_MPLS || type == ETHERTYPE_MPLS_MULTICAST;
}

/* The key's field for a tag. */
static __always_inline __u16 present_vlan(__u16 tci)
{
	return (tci & VLAN_ID_MASK) | VLAN_PRESENT;
}

/* Tags come outermost first. */
static __always_inline void push_vlan(struct packet *pkt, __u16 tci)
{
	if (pkt->key.vlan && !pkt->key.outer_vlan)
		pkt->key.outer_vlan = pkt->key.vlan;
	pkt->key.vlan = present_vlan(tci);
}

static __always_inline int parse_vlans(struct cursor *c, struct packet *pkt,
				       int type)
{
	for (int i = 0; i < VLAN_DEPTH && is_vlan(type); i++) {
		const struct vlan_wire *tag = cursor_take(c, sizeof(*tag));

		if (!tag)
			return reject(UNPARSED_SHORT);
		push_vlan(pkt, bpf_ntohs(tag->tci));
		type = bpf_ntohs(tag->type);
		if (!cursor_settle(c))
			return reject(UNPARSED_TOO_DEEP);
	}
	return is_vlan(type) ? reject(UNPARSED_TOO_DEEP) : type;
}

/* The ethertype that the version field of an IP header stands for. */
static __always_inline int peek_ip(const struct cursor *c)
{
	struct cursor ahead = *c;
	const __u8 *first = cursor_take(&ahead, 1);

	if (!first)
		return reject(UNPARSED_SHORT);
	if (*first >> 4 == 4)
		return ETHERTYPE_IPV4;
	if (*first >> 4 == 6)
		return ETHERTYPE_IPV6;
	return reject(UNPARSED_NOT_IP);
}

/* RFC 3032: labels up to the bottom of the stack; the payload is not named. */
static __always_inline int parse_mpls(struct cursor *c)
{
	for (int i = 0; i < MPLS_DEPTH; i++) {
		const __u8 *label = cursor_take(c, 4);

		if (!label)
			return reject(UNPARSED_SHORT);
		if (label[2] & 1)
			return cursor_settle(c) ? peek_ip(c) :
						  reject(UNPARSED_TOO_DEEP);
	}
	return reject(UNPARSED_TOO_DEEP);
}

static __always_inline int parse_pppoe(struct cursor *c)
{
	const struct pppoe_wire *session = cursor_take(c, sizeof(*session));

	if (!session)
		return reject(UNPARSED_SHORT);
	if (session->protocol == bpf_htons(PPP_PROTO_IPV4))
		return ETHERTYPE_IPV4;
	if (session->protocol == bpf_htons(PPP_PROTO_IPV6))
		return ETHERTYPE_IPV6;
	return reject(UNPARSED_PPP);
}

/* Parse what follows the Ethernet addresses and @type. */
static __always_inline int parse_type(struct cursor *c, struct packet *pkt,
				      int type)
{
	type = parse_vlans(c, pkt, type);
	if (type == ETHERTYPE_PPPOE_SESSION)
		return parse_pppoe(c);
	if (is_mpls(type))
		return parse_mpls(c);
	if (type < 0 || type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6)
		return type;
	if (type == ETHERTYPE_PPPOE_DISCOVERY)
		return reject(UNPARSED_PPP);
	return reject(type == ETHERTYPE_ARP ? UNPARSED_ARP : UNPARSED_NOT_IP);
}

static __always_inline int parse_ether(struct cursor *c, struct packet *pkt)
{
	const struct ether_wire *eth = cursor_take(c, sizeof(*eth));

	if (!eth)
		return reject(UNPARSED_SHORT);
	pkt->attrs.has_mac = 1;
	return parse_type(c, pkt, bpf_ntohs(eth->type));
}

#endif
