/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The health of TCP connections in flow records, from the table of connections: each record has
 * the counts since the flow's previous one, and the current round-trip and response times. A
 * flow's connection is the one at the first of its points.
 */
#ifndef NETOBS_FLOWS_HEALTH_H
#define NETOBS_FLOWS_HEALTH_H

#include "engine/connections.h"
#include "flow_extra.h"

/* Counters of a connection's direction that records have reported so far. */
struct health_reported {
	uint64_t retransmitted_bytes;
	uint32_t rtt_samples;
	uint32_t responses;
	uint32_t retransmits;
	uint32_t out_of_order;
	uint32_t late_unknown;
	uint32_t duplicate_acks;
	uint32_t zero_windows;
};

/* A place in the table of connections; born_ns tells the connections of a place apart. */
struct health_place {
	uint64_t born_ns;
	struct health_reported reported[2];
};

struct health {
	const struct connections *table;
	struct health_place *places;
	struct flow_extra extra; /* for merge_options.extras */
};

/** @return 0; -ENOMEM */
int health_init(struct health *health, const struct connections *table);
void health_done(struct health *health);

#endif
