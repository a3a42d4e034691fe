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

/*
 * The sampling rates of a context. In the kernel, few bits of a flow's key are free for the rate at
 * which its packets are sampled: the key has the number of the rate, which is below RATES. A number
 * keeps its meaning while programs that use it may run, and entries with it may wait in the tables.
 * Flows in user space live longer, so they have an identifier of the rate instead, of which there
 * are more: it is in use as long as a number or a flow has it.
 */

enum { RATE_IDS = 64 };

struct rates {
	struct rate numbers[RATES]; /* number 0: all packets; others: interval 0: free */
	struct rate ids[RATE_IDS]; /* identifier 0: all packets */
	uint8_t id_of[RATES];	   /* identifier of each number */
	bool is_sampling;	   /* some packets are sampled, or were once */
};

/* Make a rate of the public fields sampling and sampling_mode; an interval of 1 is all packets. */
static inline struct rate rate_of(uint32_t interval, unsigned int mode)
{
	return interval > 1 ? (struct rate){ interval, mode } :
			      (struct rate){ 0 };
}

/* Take over numbers that an earlier process used. */
void rates_adopt(struct rates *rates, const struct rate numbers[RATES]);

/** @return the number of a rate; RATES: none */
uint32_t rates_number(const struct rate numbers[RATES], const struct rate *rate);

/**
 * Give each rate of a list a number.
 *
 * @param n_flows  flows in user space by identifier; NULL: there are no flows
 * @param ret_new  1 << number, or-ed, for each number that was free
 * @return 0; -EBUSY: too few are free, and nothing has changed
 */
int rates_take(struct rates *rates, const struct rate *list, uint32_t n,
	       const uint32_t n_flows[RATE_IDS], uint32_t *ret_new);

/* Free all numbers except those of the list: no program uses them, and all entries were read. */
void rates_keep(struct rates *rates, const struct rate *list, uint32_t n);

/* @return whether the packets of flows with that identifier are sampled independently at each point */
static inline bool rates_are_random(const struct rates *rates, uint32_t id)
{
	return rates->ids[id].interval && rates->ids[id].mode == SAMPLE_PACKETS;
}

#endif
