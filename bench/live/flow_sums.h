/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Sums per tuple, in a hash table that grows: what an agent does in user space. */
#ifndef NETOBS_BENCH_FLOW_SUMS_H
#define NETOBS_BENCH_FLOW_SUMS_H

#include <linux/types.h>
#include <stdint.h>

#include "baseline.h"

struct flow_sum {
	struct packet_tuple tuple;
	uint64_t packets; /* 0: the place is free */
	uint64_t bytes;
	uint64_t first_ns;
	uint64_t last_ns;
};

struct flow_sums {
	struct flow_sum *places;
	uint64_t n_places; /* a power of two */
	uint64_t n_flows;
	uint64_t packets;
	uint64_t bytes;
};

uint64_t packet_tuple_hash(const struct packet_tuple *tuple);

int flow_sums_init(struct flow_sums *sums);
void flow_sums_free(struct flow_sums *sums);

int flow_sums_add(struct flow_sums *sums, const struct packet_sample *sample);

#endif
