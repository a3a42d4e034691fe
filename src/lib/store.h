/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The kernel side of a context: its maps, and programs that share them. */
#ifndef NETOBS_LIB_STORE_H
#define NETOBS_LIB_STORE_H

#include "bpf/types.h"
#include "log.h"

#include <stddef.h>
#include <stdint.h>

struct flows_bpf;

struct store_options {
	uint32_t max_flows;
	enum clock_kind clock;
};

struct store {
	const struct log *log;
	struct flows_bpf *maps; /* an object without programs */
	struct store_options options;
	uint32_t n_cpus;
	uint32_t l1_bits;
	struct cpu_state *cpus;	    /* mapped, n_cpus of them */
	struct table_state *tables; /* mapped, one per generation */
	int l2_fds[GENERATIONS];
};

/* A program for each direction; both or none. */
struct programs {
	int fds[2]; /* indexed by enum netobs_direction */
};

int store_open(struct store *store, const struct store_options *options,
	       const struct log *log);

void store_close(struct store *store);

/* Load the programs for interfaces of one kind in one namespace. */
int store_load_programs(struct store *store, uint16_t netns,
			enum link_kind link, struct programs *ret_programs);

void programs_close(struct programs *programs);

/* L1 entries per CPU and generation. */
static inline uint32_t store_l1_slots(const struct store *store)
{
	return 1U << store->l1_bits;
}

/*
 * Map one CPU's L1 entries of one generation. Mapped when needed only: mapped
 * pages count as memory of this process.
 */
struct flow_entry *store_map_l1(const struct store *store, uint32_t generation,
				uint32_t cpu);
void store_unmap_l1(const struct store *store, struct flow_entry *entries);

/*
 * Put an empty table in the place of a generation's, and hand out the old one.
 * Waits for the kernel's grace period: some milliseconds.
 */
int store_swap_l2(struct store *store, uint32_t generation, int *ret_old_fd);

/* Polls readable when the ring buffer has filled up to where that is told. */
int store_events_fd(const struct store *store);

/* Hand over all that is in the ring buffer. */
int store_read_events(const struct store *store,
		      int (*on_event)(void *ctx, void *data, size_t size),
		      void *ctx);

/* Sum of all CPUs' counters of a generation. */
void store_read_counters(const struct store *store, uint32_t generation,
			 struct counters *ret_counters);

#endif
