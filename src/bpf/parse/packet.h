/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The result of parsing one packet. */
#ifndef NETOBS_BPF_PARSE_PACKET_H
#define NETOBS_BPF_PARSE_PACKET_H

#include "bpf/types.h"
#include "cursor.h"
#include "headers.h"

enum fragment_kind {
	FRAGMENT_NONE,
	FRAGMENT_FIRST, /* has the transport header */
	FRAGMENT_LATER,
};

struct packet {
	struct flow_key key;
	__u16 l3_offset; /* of the outermost IP header */
	__u16 routing;	 /* offset of its last routing header; 0: it has none */
	__u32 header_end; /* of the innermost transport header */
	__u32 ip_len;	  /* by the outermost IP header; 0: unknown */
	__u32 fragment_id;
	struct flow_attrs attrs;
	__u8 unsent;   /* header bytes that segments will not have */
	__u8 fragment; /* enum fragment_kind */
	__u8 fragment_proto;
	__u8 tcp_header; /* its length; not of plain packets */

	/* Set for tunnelled packets only: key.tunnel. */
	__u16 outer_src_port;
	__u16 outer_dst_port;
	__u32 outer_check;
	struct ip_addr outer_src;
	struct ip_addr outer_dst;
};

static __always_inline void packet_init(struct packet *pkt)
{
	__builtin_memset(pkt, 0, offsetof(struct packet, outer_src_port));
}

enum {
	PARSE_CUT = 1, /* a flow, though its transport header is cut off behind the ports */
	PARSE_PLAIN = 2, /* see plain.h */
};

/* Parse functions return >= 0, or this. */
static __always_inline int reject(enum unparsed_reason reason)
{
	return -1 - (int)reason;
}

static __always_inline enum unparsed_reason reject_reason(int ret)
{
	return -1 - ret;
}

#endif
