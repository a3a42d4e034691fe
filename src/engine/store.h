/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The kernel side of a context: its maps, and programs that share them. */
#ifndef NETOBS_ENGINE_STORE_H
#define NETOBS_ENGINE_STORE_H

#include "bpf/store/hash.h"
#include "base/log.h"
#include "flow_programs.h"
#include "origins.h"
#include "tables.h"

#include <stddef.h>
#include <stdint.h>

#define STORE_LOG_NONE UINT32_MAX /* to measure what logs are worth */

struct store_options {
	uint64_t max_flows;
	uint64_t max_memory; /* bytes of BPF maps; 0: what max_flows need */
	enum clock_kind clock;
	uint32_t lanes; /* of each CPU, see types.h; 0: what this kernel needs */
	uint32_t log_slots; /* per CPU, a power of two; 0: what suits this machine */
	const struct filter *filter; /* NULL: all packets; stays the caller's */
	enum sampling sampling;
	uint32_t sampling_interval; /* one of so many; 0: all */
};

struct store {
	const struct log *log;
	struct program_set maps; /* without programs */
	struct store_options options;
	uint32_t lanes;
	uint32_t n_cpus;	/* possible ones, times their lanes */
	uint32_t l1_buckets;	/* per CPU and generation */
	uint32_t log_slots;	/* per CPU, a power of two */
	uint64_t process_bytes; /* for the flows taken from tables; 0: no limit */
	struct cpu_state *cpus;	    /* mapped, n_cpus of them */
	struct table_state *states; /* mapped, one per generation */
	struct tables tables;
	struct origins origins;
	struct hash_secret secret; /* the programs' */
};

int store_open(struct store *store, const struct store_options *options,
	       const struct log *log);

void store_close(struct store *store);

/* Load the programs for interfaces of one kind in one namespace. */
int store_load_programs(struct store *store, uint16_t netns,
			enum link_kind link, struct programs *ret_programs);

/*
 * Map one CPU's part of L1 in one generation, l1_buckets of them. Mapped
 * when needed only: mapped pages count as memory of this process.
 */
struct flow_bucket *store_map_l1(const struct store *store, uint32_t generation,
				 uint32_t cpu);
void store_unmap_l1(const struct store *store, struct flow_bucket *buckets);

/* Map one CPU's log, of log_slots; NULL: errno. Mapped when needed only, too. */
const struct log_slot *store_map_log(const struct store *store, uint32_t cpu);
void store_unmap_log(const struct store *store, const struct log_slot *slots);

/* Of a generation at rest: what was entered into the shared table; forgets it. */
uint64_t store_take_inserts(struct store *store, uint32_t generation);

/* Turn counting off or on, for all programs at once. It is on at first. */
void store_pause(struct store *store, bool pause);

/* The memory of all BPF maps, in bytes, about. */
uint64_t store_bytes(const struct store *store);

/* The map that tunnel_addrs_init() takes. */
int store_tunnel_addrs_fd(const struct store *store);

/* Polls readable when the ring buffer has filled up to its watermark. */
int store_events_fd(const struct store *store);

/* Hand over all that is in the ring buffer. */
int store_read_events(const struct store *store,
		      int (*on_event)(void *ctx, void *data, size_t size),
		      void *ctx);

/* Packets that got no lane, since the beginning. */
struct count store_unclaimed(const struct store *store);

/* Sum of all CPUs' counters of a generation. */
void store_read_counters(const struct store *store, uint32_t generation,
			 struct counters *ret_counters);

#endif
