/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Addresses and tuples as texts have them. */
#ifndef HARNESS_LIB_ADDR_H
#define HARNESS_LIB_ADDR_H

#include "bpf/nat.h"
#include "lib_test.h"

#include <arpa/inet.h>

/* IPv4 as ::ffff:a.b.c.d. */
static inline void set_addr(uint8_t addr[16], const char *text)
{
	memset(addr, 0, 16);
	if (strchr(text, ':')) {
		assert_int_equal(inet_pton(AF_INET6, text, addr), 1);
		return;
	}
	addr[10] = addr[11] = 0xff;
	assert_int_equal(inet_pton(AF_INET, text, addr + 12), 1);
}

/* Of IPv4. */
static inline struct nat_tuple nat_tuple_of(const char *src, uint16_t src_port,
					    const char *dst, uint16_t dst_port,
					    uint8_t proto)
{
	struct nat_tuple tuple = { .src_port = htons(src_port),
				   .dst_port = htons(dst_port),
				   .family = AF_INET,
				   .proto = proto };

	assert_int_equal(inet_pton(AF_INET, src, tuple.src), 1);
	assert_int_equal(inet_pton(AF_INET, dst, tuple.dst), 1);
	return tuple;
}

#endif
