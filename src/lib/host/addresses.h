/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The addresses of the interfaces of a network namespace. */
#ifndef NETOBS_HOST_ADDRESSES_H
#define NETOBS_HOST_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

struct addresses {
	uint8_t (*list)[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint32_t n;
};

/**
 * Read the addresses of a namespace, in place of the previous ones.
 *
 * @param ns_fd  -1: the calling thread's namespace
 * @return 0, or -errno: nothing has changed
 */
int addresses_read(struct addresses *addresses, int ns_fd);
void addresses_done(struct addresses *addresses);

/** @return whether @address is among them, or in 127.0.0.0/8 */
bool addresses_have(const struct addresses *addresses, const uint8_t address[16]);

#endif
