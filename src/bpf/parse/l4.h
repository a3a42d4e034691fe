/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Transport headers: ports, TCP flags, ICMP type and code. Returns 0, PARSE_CUT or
 * a rejection.
 */
#ifndef NETOBS_BPF_PARSE_L4_H
#define NETOBS_BPF_PARSE_L4_H

#include "packet.h"

/* The bytes a transport header has at least; 0 when it is not looked into. */
static __always_inline __u32 l4_header_len(const struct flow_key *key)
{
	switch (key->proto) {
	case IP_PROTO_TCP:
		return TCP_HEADER_LEN;
	case IP_PROTO_UDP:
	case IP_PROTO_UDPLITE:
		return UDP_HEADER_LEN;
	case IP_PROTO_SCTP:
		return SCTP_HEADER_LEN;
	case IP_PROTO_DCCP:
		return DCCP_HEADER_LEN;
	case IP_PROTO_ICMP:
		return key->flags & KEY_IPV6 ? 0 : ICMP_HEADER_LEN;
	case IP_PROTO_ICMPV6:
		return key->flags & KEY_IPV6 ? ICMP_HEADER_LEN : 0;
	default:
		return 0;
	}
}

/*
 * The marks of a TCP header's 12 bits of flags. GSO and GRO change nothing about
 * them: all segments carry ACK, and the one with FIN has it too.
 */
static __always_inline __u32 tcp_marks(__u32 flags)
{
	__u32 ends = flags & (TCP_FIN | TCP_SYN | TCP_RST);

	return flags & TCP_ACK ? flags | ends * MARK_FIN_ACK : flags;
}

static __always_inline int parse_tcp(struct cursor *c, struct packet *pkt)
{
	const __u8 *tcp = cursor_take(c, TCP_FLAGS_END);
	__u32 header;

	if (!tcp) {
		pkt->attrs.marks |= MARK_NO_TCP_FLAGS;
		return PARSE_CUT;
	}
	header = (tcp[12] >> 4) * 4;
	if (header < TCP_HEADER_LEN)
		return reject(UNPARSED_BAD_HEADER);

	pkt->attrs.marks |= tcp_marks((tcp[12] & 0xf) << 8 | tcp[13]);
	/* Options count for segmentation, whether or not they are in reach. */
	pkt->header_end += header;
	pkt->tcp_header = header;
	return 0;
}

/* Ports, or type and code: without them it is no flow. */
static __always_inline int parse_ports(const struct cursor *c,
				       struct packet *pkt, __u32 header)
{
	struct cursor start = *c;

	if (header == ICMP_HEADER_LEN) {
		const __u8 *icmp = cursor_take(&start, 2);

		if (!icmp)
			return reject(UNPARSED_SHORT);
		pkt->key.dst_port = icmp[0] << 8 | icmp[1];
	} else {
		const struct ports_wire *ports =
			cursor_take(&start, sizeof(*ports));

		if (!ports)
			return reject(UNPARSED_SHORT);
		pkt->key.src_port = bpf_ntohs(ports->src);
		pkt->key.dst_port = bpf_ntohs(ports->dst);
	}
	return 0;
}

/* A first fragment may end in mid-header: 8 bytes are enough (RFC 791, 3.2). */
static __always_inline int parse_part(const struct cursor *c, struct packet *pkt,
				      __u32 header, __u32 ip_room)
{
	if (pkt->fragment != FRAGMENT_FIRST ||
	    ip_room < sizeof(struct ports_wire))
		return reject(UNPARSED_BAD_HEADER);
	if (pkt->key.proto == IP_PROTO_TCP)
		pkt->attrs.marks |= MARK_NO_TCP_FLAGS;
	pkt->header_end += ip_room;
	return parse_ports(c, pkt, header);
}

/* @ip_room: transport bytes that the IP header promises. */
static __always_inline int parse_l4(struct cursor *c, struct packet *pkt,
				    __u32 ip_room)
{
	__u32 header = l4_header_len(&pkt->key);
	int ret;

	if (!header)
		return 0;
	if (header > ip_room)
		return parse_part(c, pkt, header, ip_room);
	ret = parse_ports(c, pkt, header);
	if (ret)
		return ret;
	if (pkt->key.proto == IP_PROTO_TCP)
		return parse_tcp(c, pkt);
	/* Spelled out: a length the verifier knows per case. */
	if (!(header == 4 ? cursor_take(c, 4) :
	      header == 8 ? cursor_take(c, 8) :
			    cursor_take(c, 12)))
		return PARSE_CUT;
	pkt->header_end += header;
	return 0;
}

#endif
