/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The members of a store, and functions that read them at any time. */
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
	uint64_t max_flows; /* per interval */
	uint64_t max_memory; /* bytes of maps and of flows in this process; 0: enough for max_flows */
	enum clock_kind clock;
	uint32_t lanes;	    /* per CPU, see types.h; 0: as this kernel needs */
	uint32_t log_slots; /* per CPU, a power of two; 0: as fits this machine */
	const struct filter *filter; /* NULL: all packets; stays the caller's */
	struct rate rate;	     /* sampling rate if there is no filter */
	bool rtt;		     /* measure connections */
	uint32_t connections; /* slots of their table; 0: as memory allows */
	bool has_alerts; /* there may be rules about connections; requires rtt */
	bool has_nat;	 /* report translations */
	uint64_t disabled_features; /* as netobs_opts.disable_features */
	struct pinned *pinned; /* the set that outlives the process; NULL: none does */
	enum netobs_direction direction; /* observe packets of this direction */
	uint32_t attach_order; /* these two are for pinned_state only */
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
	bool is_growing; /* call store_grow() soon: the table of connections has steps left */
	bool cannot_grow;     /* it cannot grow, which was logged */
	uint64_t entry_bytes; /* limit for entries until they are merged; 0: none */
	uint64_t overflow_bytes; /* limit for entries of overflow tables; 0: none */
	uint64_t process_bytes;	 /* limit for flows; 0: none */
	struct cpu_state *cpus;	 /* mapped, n_cpus of them */
	struct count *unclaimed; /* mapped: packets that found no free lane */
	struct overflow overflow;
	struct connections connections; /* mapped; zeroes without RTT */
	struct nat_layout nat; /* structs of this kernel; zeroes unless has_nat */
	struct ring_buffer *notices;
	struct origins origins;
	struct rates rates;	   /* of the loaded programs */
	struct hash_secret secret; /* the hash secret of the programs */
	uint32_t kept; /* options of the earlier process that stay in use: enum netobs_kept */
	bool is_adopted; /* the maps are those of an earlier process, and may contain packets */
	/* Counters of the maps when this process took them over. */
	struct counters counted_before[GENERATIONS];
	struct count unclaimed_before;
	struct count unreported_before; /* drained by earlier processes, but in no record */
};

/* @return the knobs that all maps and programs of the store share; the caller adds those of one program */
struct flow_knobs store_knobs(const struct store *store);

/* @return memory of all BPF maps in bytes, estimated */
uint64_t store_bytes(const struct store *store);

/* @return packets that found no free lane since the store was opened */
struct count store_unclaimed(const struct store *store);

#endif
