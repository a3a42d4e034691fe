/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The kernel side of a context: its maps, and programs that share them. */
#ifndef NETOBS_ENGINE_STORE_H
#define NETOBS_ENGINE_STORE_H

#include "store_state.h"

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

/* Add what connections will need: see connections_grow(). A failure is logged. */
void store_grow(struct store *store);

/* The map that tunnel_addrs_init() takes. */
int store_tunnel_addrs_fd(const struct store *store);

/* Polls readable when a log fills up, until store_clear_notices(). */
int store_notices_fd(const struct store *store);
void store_clear_notices(const struct store *store);

/* Sum of all CPUs' counters of a generation, since the beginning. */
void store_read_counters(const struct store *store, uint32_t generation,
			 struct counters *ret_counters);

#endif
