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

/* From the IP header to the end of the transport header; see parse_l4(). */
static __always_inline int parse_network(struct cursor *c, struct packet *pkt,
					 int type)
{
	__u32 start = cursor_offset(c), header, room = ~0U;
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
	if (pkt->fragment == FRAGMENT_LATER)
		return 0;
	if (pkt->ip_len)
		room = pkt->ip_len - header;
	return parse_l4(c, pkt, room);
}

/* Make @pkt the flow of what @outer carries. */
static __always_inline int parse_inner(struct cursor *c, struct packet *pkt,
				       const struct packet *outer,
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

	pkt->ip_len = outer->ip_len;
	pkt->key.outer_vlan = outermost;
	pkt->outer_src = outer->key.src;
	pkt->outer_dst = outer->key.dst;
	pkt->outer_src_port = outer->key.src_port;
	pkt->outer_dst_port = outer->key.dst_port;
	/*
	 * Which tunnel, and which way. Not the ports: a VXLAN source port differs
	 * from inner flow to flow.
	 */
	pkt->key.outer_hash = hash_addrs(&outer->key, secret->outer);
	pkt->outer_check = hash_addrs(&outer->key, secret->outer_check);
	return ret;
}

/*
 * Parse one frame into @pkt, zeroed by the caller but for what the key holds of
 * the observation point and tags that the kernel keeps beside the frame. Returns
 * 0, PARSE_CUT or a rejection.
 *
 * A tunnel is opened once; where what it carries cannot be parsed, the packet
 * is a flow of the outer tuple, and *@ret_cut says whether more bytes might
 * have helped. @outer is room to work in. @secret: of the hashes of tunnels.
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

#endif
