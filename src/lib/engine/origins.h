/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The list of origins for the programs (src/bpf/track/origins.h), made anew as a whole:
 * origins_begin(), origins_put() each, origins_end(). Only what differs from the
 * list before is written to the kernel.
 */
#ifndef NETOBS_ENGINE_ORIGINS_H
#define NETOBS_ENGINE_ORIGINS_H

#include "bpf/types.h"

#include <stdint.h>

struct origins {
	uint64_t *slots; /* mapped */
	int more_fd;
	uint64_t *wanted; /* slots to be, ORIGIN_SLOTS of them */
	uint64_t *more;	  /* in the hash table, and after them what is to be */
	uint32_t n_more;
	uint32_t n_wanted_more;
	uint32_t more_capacity;
};

/* Takes over neither descriptor. */
int origins_init(struct origins *origins, int slots_fd, int more_fd);
void origins_done(struct origins *origins);

void origins_begin(struct origins *origins);
void origins_put(struct origins *origins, uint16_t netns, uint32_t ifindex);
void origins_end(struct origins *origins);

#endif
