/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Whether an expression matches packets of which only addresses, ports and protocol are known. */
#ifndef NETOBS_FILTER_TUPLE_H
#define NETOBS_FILTER_TUPLE_H

#include "filter.h"

struct filter_tuple {
	uint8_t src[16], dst[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint16_t src_port,
		dst_port; /* ICMP, ICMPv6: an echo's identifier, and type << 8 | code */
	uint8_t proto;
};

/**
 * Check that an expression can match such packets: what tunnels carry is not known of them.
 *
 * @param filter  NULL: all
 * @return 0; -EINVAL, which is logged
 */
int filter_check_tuple(const struct filter *filter, const struct log *log);

/** @param filter  NULL: all. @return whether a packet without data, tags and a tunnel would match */
bool filter_match_tuple(const struct filter *filter,
			const struct filter_tuple *tuple);

#endif
