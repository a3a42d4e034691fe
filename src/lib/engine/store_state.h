/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a store is made of, and what can be read of it at any time. */
#ifndef NETOBS_ENGINE_STORE_STATE_H
#define NETOBS_ENGINE_STORE_STATE_H

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
	bool rtt;	  /* connections are measured */
	uint32_t connections; /* places for them; 0: what memory allows */
	bool has_alerts; /* with rtt: there may be rules about connections */
	bool has_nat;	 /* translations are reported */
	uint64_t disabled_features; /* as netobs_opts.disable_features */
	struct pinned *pinned; /* where the maps outlive the process; NULL: nowhere */
	enum netobs_direction direction; /* of packets that are observed */
	uint32_t attach_order;		 /* both for the state in there */
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
	struct count unreported_before; /* drained, and in none of its records */
};

/* What all maps and programs of the store are loaded with; those of one program are the caller's. */
struct flow_knobs store_knobs(const struct store *store);

/* The memory of all BPF maps, in bytes, about. */
uint64_t store_bytes(const struct store *store);

/* Packets that got no lane, since the beginning. */
struct count store_unclaimed(const struct store *store);

#endif
