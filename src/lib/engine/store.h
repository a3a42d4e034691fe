/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The kernel side of a context: its maps, and programs that share them. */
#ifndef NETOBS_ENGINE_STORE_H
#define NETOBS_ENGINE_STORE_H

#include "store_state.h"

int store_open(struct store *store, const struct store_options *options,
	       const struct log *log);

void store_close(struct store *store);

/*
 * Load the programs for interfaces of one kind in one namespace. @filter: NULL: no filter, and
 * packets are sampled at @rate, which must have a number.
 */
int store_load_programs(struct store *store, const struct filter *filter,
			const struct rate *rate, uint16_t netns,
			enum link_kind link, struct programs *ret_programs);

/*
 * Load programs as store_load_programs(), but log to @log. While the owner's thread uses the store,
 * another one may do this for a namespace and kind of links that have programs already.
 */
int store_load_programs_logging(struct store *store, const struct filter *filter,
				const struct rate *rate, uint16_t netns,
				enum link_kind link, const struct log *log,
				struct programs *ret_programs);

/*
 * Map the l1_buckets buckets of one CPU in one generation. Unmap them soon: mapped pages count as
 * memory of this process.
 */
struct flow_bucket *store_map_l1(const struct store *store, uint32_t generation,
				 uint32_t cpu);
void store_unmap_l1(const struct store *store, struct flow_bucket *buckets);

/* Map one CPU's log, log_slots slots; NULL: see errno. Unmap it soon, too. */
const struct log_slot *store_map_log(const struct store *store, uint32_t cpu);
void store_unmap_log(const struct store *store, const struct log_slot *slots);

/* Turn counting off or on, for all programs at once. It is on at first. */
void store_pause(struct store *store, bool pause);

/* Add bodies of connections if few are free: see connections_grow(). A failure is logged. */
void store_grow(struct store *store);

/* @return a descriptor for tunnel_addrs_init(), which the store owns */
int store_tunnel_addrs_fd(const struct store *store);

/* @return a descriptor that polls readable when a log fills up, until store_clear_notices() */
int store_notices_fd(const struct store *store);
void store_clear_notices(const struct store *store);

/* Sum up the counters of a generation over all CPUs, since the store was opened. */
void store_read_counters(const struct store *store, uint32_t generation,
			 struct counters *ret_counters);

#endif
