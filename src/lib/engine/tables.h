/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Tables of the programs that user space fills or asks. */
#ifndef NETOBS_ENGINE_TABLES_H
#define NETOBS_ENGINE_TABLES_H

#include "bpf/types.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The list of origins for the programs (src/bpf/track/packet.h), rebuilt as a whole by
 * origins_begin(), origins_put() each, origins_end(). Only the differences to the previous list are
 * written to the kernel.
 */

struct origins {
	uint64_t *slots; /* mapped */
	int more_fd;
	uint64_t *wanted; /* the new list's slots, ORIGIN_SLOTS of them */
	uint64_t *more; /* n_more origins in the hash table, then n_wanted_more of the new list */
	uint32_t n_more;
	uint32_t n_wanted_more;
	uint32_t more_capacity;
};

/* Both descriptors stay the caller's. */
int origins_init(struct origins *origins, int slots_fd, int more_fd);
void origins_done(struct origins *origins);

void origins_begin(struct origins *origins);
void origins_put(struct origins *origins, uint16_t netns, uint32_t ifindex);
void origins_end(struct origins *origins);

/* The addresses of tunnels, which the kernel keeps apart from the flows. */

enum { TUNNELS_CACHED = 256 };

/* A cache of addresses that were looked up: few tunnels have many flows. */
struct tunnel_addrs_cache {
	int fd; /* of the BPF map; -1: there is none */
	struct {
		struct tunnel_key key;
		struct tunnel_addrs addrs;
		bool is_known;
	} slots[TUNNELS_CACHED];
};

/* @fd: the map; stays the caller's */
void tunnel_addrs_init(struct tunnel_addrs_cache *cache, int fd);

/* @return false: newer tunnels have evicted the addresses from the kernel's map */
bool tunnel_addrs_find(struct tunnel_addrs_cache *cache,
		       const struct flow_entry *entry,
		       struct tunnel_addrs *ret_addrs);

#endif
