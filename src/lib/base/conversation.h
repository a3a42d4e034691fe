/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Conversations and connections: their id, which end is the server, how they fail. */
#ifndef NETOBS_BASE_CONVERSATION_H
#define NETOBS_BASE_CONVERSATION_H

#include <netinet/in.h>
#include <netobs/flow.h>
#include <netobs/session.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "text.h"

/*
 * The id of a conversation: the same for both of its directions, and on all hosts, because it is of
 * addresses, ports and the protocol alone.
 */

/* The tuple of a packet. */
struct conversation {
	const uint8_t *src, *dst;    /* 16 bytes each; of IPv4 ::ffff:a.b.c.d */
	uint16_t src_port, dst_port; /* ICMP: 0, and type << 8 | code */
	uint8_t proto;
};

/** @return not 0 */
uint64_t conversation_id(const struct conversation *conversation);

/* The server's end of a flow, as far as the flow itself shows. */

enum server_end {
	SERVER_UNKNOWN,
	SERVER_SOURCE,
	SERVER_DESTINATION,
};

static inline bool is_multicast(const uint8_t addr[16])
{
	return addr[0] == 0xff || (ip_is_v4(addr) && addr[12] >= 224);
}

/* One end of TCP accepts, the other one opens. @tcp_combined: as in flows. */
static inline enum server_end server_by_flags(uint16_t tcp_flags,
					      uint8_t tcp_combined)
{
	const uint16_t syn = 0x02;

	if (tcp_combined & NETOBS_TCP_SYN_ACK)
		return SERVER_SOURCE;
	return tcp_flags & syn ? SERVER_DESTINATION : SERVER_UNKNOWN;
}

/* The server's end of protocols without ports. @type: of ICMP and ICMPv6. */
static inline enum server_end server_by_type(uint8_t proto, uint8_t type)
{
	const bool is_reply = (proto == IPPROTO_ICMP && type == 0) ||
			      (proto == IPPROTO_ICMPV6 && type == 129);

	return is_reply ? SERVER_SOURCE : SERVER_DESTINATION;
}

/* @return the server's end by flags, the type, or a group of receivers */
static inline enum server_end server_of_flow(const struct netobs_flow *flow)
{
	enum server_end end = SERVER_UNKNOWN;

	if (flow->has & NETOBS_HAS_TCP)
		end = server_by_flags(flow->tcp_flags, flow->tcp_combined);
	if (end)
		return end;
	if (!(flow->has & NETOBS_HAS_PORTS))
		return server_by_type(flow->proto, flow->has & NETOBS_HAS_ICMP ?
							   flow->icmp_type :
							   1);
	return is_multicast(flow->dst) ? SERVER_DESTINATION : SERVER_UNKNOWN;
}

/* If nothing else is known, the server has the lower port, or address. */
static inline enum server_end server_by_port(const uint8_t src[16],
					     uint16_t src_port,
					     const uint8_t dst[16],
					     uint16_t dst_port)
{
	bool is_src_lower = memcmp(src, dst, 16) < 0;

	if (src_port != dst_port)
		is_src_lower = src_port < dst_port;
	return is_src_lower ? SERVER_SOURCE : SERVER_DESTINATION;
}

/* Failures of connections, for all that counts them. */

enum session_failure {
	SESSION_FINE,
	SESSION_REFUSED,
	SESSION_RESET, /* by either end */
	SESSION_TIMED_OUT,
	SESSION_BROKEN, /* another error */
};

/* @ended: enum netobs_session_ended */
static inline enum session_failure session_failure(unsigned int ended)
{
	switch (ended) {
	case NETOBS_SESSION_REFUSED:
		return SESSION_REFUSED;
	case NETOBS_SESSION_RESET:
	case NETOBS_SESSION_ABORTED:
		return SESSION_RESET;
	case NETOBS_SESSION_TIMEOUT:
		return SESSION_TIMED_OUT;
	case NETOBS_SESSION_FAILED:
		return SESSION_BROKEN;
	default:
		return SESSION_FINE;
	}
}

#endif
