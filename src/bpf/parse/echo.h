/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Echo requests and replies among the flows of ICMP and ICMPv6 (RFC 792, RFC 4443). */
#ifndef NETOBS_BPF_PARSE_ECHO_H
#define NETOBS_BPF_PARSE_ECHO_H

#include "bpf/types.h"
#include "headers.h"

enum echo_kind { ECHO_NONE, ECHO_REQUEST, ECHO_REPLY };

/* Types, with code 0, as keys of flows have them. */
enum {
	ICMP_ECHO_KEY = 8 << 8,
	ICMP_ECHO_REPLY_KEY = 0,
	ICMPV6_ECHO_KEY = 128 << 8,
	ICMPV6_ECHO_REPLY_KEY = 129 << 8,
};

static __always_inline enum echo_kind echo_kind(const struct flow_key *key)
{
	bool is_ipv6 = key->flags & KEY_IPV6;

	if (key->proto != (is_ipv6 ? IP_PROTO_ICMPV6 : IP_PROTO_ICMP))
		return ECHO_NONE;
	if (key->dst_port == (is_ipv6 ? ICMPV6_ECHO_KEY : ICMP_ECHO_KEY))
		return ECHO_REQUEST;
	if (key->dst_port ==
	    (is_ipv6 ? ICMPV6_ECHO_REPLY_KEY : ICMP_ECHO_REPLY_KEY))
		return ECHO_REPLY;
	return ECHO_NONE;
}

#endif
