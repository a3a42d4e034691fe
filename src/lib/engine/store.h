/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The kernel side of a context: its maps, and programs that share them. */
#ifndef NETOBS_ENGINE_STORE_H
#define NETOBS_ENGINE_STORE_H

#include "bpf/store/hash.h"
#include "base/log.h"
#include "flow_programs.h"
#include "connections.h"
#include "nat.h"
#include "origins.h"
#include "overflow.h"
#include "rates.h"

#include <stddef.h>
#include <stdint.h>

#define STORE_LOG_NONE \
	UINT32_MAX /* all that misses L1 overflows, to measure that */

enum { STORE_CONNECTIONS_MAX = 1 << 24 };

struct ring_buffer;

struct store_options {
	uint64_t max_flows; /* in an interval */
	uint64_t max_memory; /* bytes of maps, and of flows here; 0: what max_flows need */
	enum clock_kind clock;
	uint32_t lanes; /* of each CPU, see types.h; 0: what this kernel needs */
	uint32_t log_slots; /* per CPU, a power of two; 0: what suits this machine */
	const struct filter *filter; /* NULL: all packets; stays the caller's */
	struct rate rate; /* at which packets are sampled if there is no filter */
	enum rtt_mode rtt;
	uint32_t connections; /* places for them; 0: what memory allows */
	bool has_alerts; /* with rtt: there may be rules about connections */
	bool has_nat;	 /* translations are reported */
	uint64_t disabled_features; /* as netobs_opts.disable_features */
	struct pinned *pinned; /* where the maps outlive the process; NULL: nowhere */
	uint32_t attach_order; /* both for the state in there */
	uint32_t attach_kinds;
};

struct store {
	const struct log *log;
	struct program_set maps; /* without programs */
	struct store_options options;
	uint32_t lanes;
	uint32_t n_cpus;     /* possible ones, times their lanes */
	uint32_t l1_buckets; /* per CPU and generation */
	uint32_t log_slots;  /* per CPU, a power of two */
	uint32_t conn_buckets; /* a power of two; 0: connections are not measured */
	uint32_t part_bits; /* of conn_parts_bits() */
	bool is_growing;  /* the table of connections: call store_grow() soon */
	bool cannot_grow; /* likewise, which was logged */
	uint64_t entry_bytes; /* for entries until they are merged; 0: no limit */
	uint64_t overflow_bytes; /* for those of overflow tables; 0: no limit */
	uint64_t process_bytes; /* for the flows that they become; 0: no limit */
	struct cpu_state *cpus;	 /* mapped, n_cpus of them */
	struct count *unclaimed; /* mapped: packets that got no lane */
	struct overflow overflow;
	struct connections connections; /* mapped; zeroes without RTT */
	struct nat_layout nat; /* of this kernel; zeroes unless has_nat */
	struct ring_buffer *notices;
	struct origins origins;
	struct rates rates;	   /* of the programs that are loaded */
	struct hash_secret secret; /* the programs' */
	uint32_t kept; /* options of the earlier process that stay in use: enum netobs_kept */
	bool is_adopted; /* the maps are those of an earlier process, and may contain packets */
	/* What the maps had counted before this process. */
	struct counters counted_before[GENERATIONS];
	struct count unclaimed_before;
};

int store_open(struct store *store, const struct store_options *options,
	       const struct log *log);

void store_close(struct store *store);

/*
 * Load the programs for interfaces of one kind in one namespace. @filter: NULL if the
 * options have none; then packets are sampled at @rate, which has to have a number.
 */
int store_load_programs(struct store *store, const struct filter *filter,
			const struct rate *rate, uint16_t netns,
			enum link_kind link, struct programs *ret_programs);

/*
 * The same, with messages to @log. While the owner's thread uses the store, another one may
 * do this for a namespace and kind of links that have programs already.
 */
int store_load_programs_logging(struct store *store, const struct filter *filter,
				const struct rate *rate, uint16_t netns,
				enum link_kind link, const struct log *log,
				struct programs *ret_programs);

/**
 * Give the rates of programs that will be loaded numbers. Those of the options have them.
 *
 * @param n_flows  as for rates_take()
 * @return 0; -EBUSY: too few are free
 */
int store_take_rates(struct store *store, const struct filter *filter,
		     const struct rate *rate, const uint32_t n_flows[RATE_IDS]);

/* Free all rates but those of @filter or @rate: see rates_keep(). */
void store_keep_rates(struct store *store, const struct filter *filter,
		      const struct rate *rate);

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

/* Turn counting off or on, for all programs at once. It is on at first. */
void store_pause(struct store *store, bool pause);

/* The memory of all BPF maps, in bytes, about. */
uint64_t store_bytes(const struct store *store);

/* Add what connections will need: see connections_grow(). A failure is logged. */
void store_grow(struct store *store);

/* The map that tunnel_addrs_init() takes. */
int store_tunnel_addrs_fd(const struct store *store);

/* Polls readable when a log fills up, until store_clear_notices(). */
int store_notices_fd(const struct store *store);
void store_clear_notices(const struct store *store);

/* Packets that got no lane, since the beginning. */
struct count store_unclaimed(const struct store *store);

/* Sum of all CPUs' counters of a generation, since the beginning. */
void store_read_counters(const struct store *store, uint32_t generation,
			 struct counters *ret_counters);

/* Note where the maps are pinned that @counted of a generation has been drained. */
void store_note_drained(const struct store *store, uint32_t generation,
			const struct counters *counted);

/*
 * The same, and what is not reported of it, in one moment: a process that is killed has noted
 * all of it, or nothing. @is_complete: the caller empties the generation, then calls
 * store_settle(); if it is killed before that, the next process has to.
 */
void store_commit(const struct store *store, uint32_t generation,
		  const struct counters *counted,
		  const struct count *unreported, bool is_complete);
void store_settle(const struct store *store);

#endif
