/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Conversations: TCP connections in which the client sends data and the server acknowledges it.
 * Connection N is flows 2N, the client's segments, and 2N + 1, the server's. A flow number
 * decides what the next packet is, in whatever order they follow each other. The same header
 * builds for the program that rewrites one packet, and for user space.
 */
#ifndef NETOBS_BENCH_TALK_H
#define NETOBS_BENCH_TALK_H

#include "bpf/parse/cursor.h"
#include "bpf/parse/headers.h"

enum {
	TALK_PORT_SOURCE = 7,
	TALK_PORT_DEST = 9,
	TALK_DATA = 64,	     /* bytes of each segment of the client */
	TALK_PSH_EVERY = 16, /* so many segments end what an application wrote */
	TALK_L3 = sizeof(struct ether_wire),
	/* Headers of either version of IP, and of TCP. */
	TALK_REACH = TALK_L3 + sizeof(struct ipv6_wire) + TCP_HEADER_LEN,
};

/* The server's address, or the end of it: 198.18.0.7 and 2001:db8::7. */
#define TALK_SERVER4 bpf_htonl(0xc6120007)
#define TALK_SERVER6 bpf_htonl(7)

/* TCP from the ports on (RFC 9293, 3.1). */
struct talk_wire {
	__be16 src_port;
	__be16 dst_port;
	__be32 seq;
	__be32 ack;
	__u8 offset;
	__u8 flags;
	__be16 window;
} WIRE;

struct talk_ends {
	__be32 src, dst;
};

static __always_inline void talk_write_ipv4(__u8 *frame, struct talk_ends ends,
					    __u32 len)
{
	struct ipv4_wire *ip = (void *)(frame + TALK_L3);

	ip->total = bpf_htons(sizeof(*ip) + TCP_HEADER_LEN + len);
	ip->src = ends.src;
	ip->dst = ends.dst;
}

static __always_inline void talk_write_ipv6(__u8 *frame, struct talk_ends ends,
					    __u32 len)
{
	struct ipv6_wire *ip = (void *)(frame + TALK_L3);

	ip->payload = bpf_htons(TCP_HEADER_LEN + len);
	__builtin_memcpy(&ip->src[12], &ends.src, sizeof(ends.src));
	__builtin_memcpy(&ip->dst[12], &ends.dst, sizeof(ends.dst));
}

/*
 * Make the next packet of @flow from @frame, of which TALK_REACH bytes are there. *@sent: the
 * segments that the client of the connection has sent.
 */
static __always_inline void talk_write(__u8 *frame, bool is_ipv6, __u32 flow,
				       __u32 *sent)
{
	__u32 n = flow & 1 ? *sent : (*sent)++, len = flow & 1 ? 0 : TALK_DATA;
	__be32 server = is_ipv6 ? TALK_SERVER6 : TALK_SERVER4;
	__be32 client = flow & ~1U, own = bpf_htonl(n * TALK_DATA + 1);
	struct talk_ends ends = { client, server };
	__u8 *l4 = frame + TALK_L3;
	struct talk_wire *tcp;

	if (flow & 1)
		ends = (struct talk_ends){ server, client };
	if (is_ipv6) {
		talk_write_ipv6(frame, ends, len);
		l4 += sizeof(struct ipv6_wire);
	} else {
		talk_write_ipv4(frame, ends, len);
		l4 += sizeof(struct ipv4_wire);
	}
	tcp = (void *)l4;
	tcp->src_port = bpf_htons(flow & 1 ? TALK_PORT_DEST : TALK_PORT_SOURCE);
	tcp->dst_port = bpf_htons(flow & 1 ? TALK_PORT_SOURCE : TALK_PORT_DEST);
	tcp->seq = flow & 1 ? bpf_htonl(1) : own;
	tcp->ack = flow & 1 ? own : bpf_htonl(1);
	tcp->flags = len && !(n % TALK_PSH_EVERY) ? TCP_ACK | 0x08 : TCP_ACK;
}

#endif
