/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The id of a conversation: the same for both of its directions, and on all hosts, because it is of
 * addresses, ports and the protocol alone.
 */
#ifndef NETOBS_BASE_CONVERSATION_H
#define NETOBS_BASE_CONVERSATION_H

#include <stdint.h>

/* The tuple of a packet. */
struct conversation {
	const uint8_t *src, *dst;    /* 16 bytes each; of IPv4 ::ffff:a.b.c.d */
	uint16_t src_port, dst_port; /* ICMP: 0, and type << 8 | code */
	uint8_t proto;
};

/** @return not 0 */
uint64_t conversation_id(const struct conversation *conversation);

#endif
