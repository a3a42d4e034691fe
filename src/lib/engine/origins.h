/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The list of origins for the programs (src/bpf/track/origins.h), rebuilt as a whole by
 * origins_begin(), origins_put() each, origins_end(). Only the differences to the previous list are
 * written to the kernel.
 */
#ifndef NETOBS_ENGINE_ORIGINS_H
#define NETOBS_ENGINE_ORIGINS_H

#include "bpf/types.h"

#include <stdint.h>

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

#endif
