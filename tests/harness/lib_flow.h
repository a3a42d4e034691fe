/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Flow records that several tests pass on, and what is found in text that is made of them. */
#ifndef HARNESS_LIB_FLOW_H
#define HARNESS_LIB_FLOW_H

#include "lib_test.h"

#include <netobs/flow.h>

/* A packet of UDP over IPv6, without an interface. */
static inline struct netobs_flow make_datagram(void)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.point_size = sizeof(struct netobs_point),
		.packets = 1,
		.bytes = 100,
		.src = { [15] = 1 },
		.dst = { [15] = 2 },
		.ethertype = 0x86dd,
		.proto = 17,
	};
}

/* 10.0.0.@src:@sport -> 10.0.0.@dst:@dport, of TCP; an ACK each. */
static inline struct netobs_flow make_tcp_flow(uint8_t src, uint16_t sport,
					       uint8_t dst, uint16_t dport)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.has = NETOBS_HAS_PORTS | NETOBS_HAS_TCP,
		.packets = 3,
		.bytes = 100,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, src },
		.dst = { [10] = 0xff, 0xff, 10, 0, 0, dst },
		.src_port = sport,
		.dst_port = dport,
		.tcp_flags = 0x10,
		.proto = 6,
	};
}

static inline size_t count_parts(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)); n++)
		text += strlen(part);
	return n;
}

#endif
