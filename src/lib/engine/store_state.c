/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "store.h"

#include "base/util.h"

/*
 * If more connections are open than the table has slots, they take turns: each is measured for so
 * long. Ended connections are shown for as long.
 */
enum { CONN_IDLE_SECONDS = 10 };

struct flow_knobs store_knobs(const struct store *store)
{
	const struct netobs_opts *opts = store->options.opts;

	return (struct flow_knobs){
		.n_cpus = store->n_cpus,
		.l1_buckets = store->l1_buckets,
		.log_slots = store->log_slots,
		.overflow_part = store->overflow.part,
		.lanes = store->lanes,
		.clock = store->options.clock,
		.direction = opts->direction,
		.secret = store->secret,
		.filter = store->options.filter,
		.may_filter = store->options.pinned,
		.rates = store->rates.numbers,
		.rate = store->options.rate,
		.rtt = opts->rtt,
		.conn_buckets = store->conn_buckets,
		.has_alerts = store->options.has_alerts,
		.nat = opts->flags & NETOBS_NAT ? &store->nat : NULL,
		.part_bits = store->part_bits,
		.conn_idle = CONN_IDLE_SECONDS,
	};
}

uint64_t store_bytes(const struct store *store)
{
	return program_set_bytes(&store->maps) +
	       overflow_bytes(&store->overflow) +
	       conn_parts_bytes(&store->connections.parts);
}

struct count store_unclaimed(const struct store *store)
{
	struct count count = { 0 };

	counters_add(&count, store->unclaimed, sizeof(count));
	counters_subtract(&count, &store->unclaimed_before, sizeof(count));
	return count;
}
