/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Round-trip times from a report of each packet, in user space: the time of a segment is
 * kept by flow and sequence number until its acknowledgment, and each flow has a moving
 * average, as in published eBPF monitors. A newer segment or flow takes the place of an
 * older one, so memory is bounded.
 */
#ifndef NETOBS_BENCH_ROUND_TRIPS_H
#define NETOBS_BENCH_ROUND_TRIPS_H

#include <linux/types.h>
#include <stdint.h>

#include "baseline.h"

struct round_trips {
	struct round_trip_segment *segments;
	struct round_trip_average *averages;
	uint64_t samples;
	uint64_t sum_ns;
};

int round_trips_init(struct round_trips *trips);
void round_trips_free(struct round_trips *trips);

void round_trips_add(struct round_trips *trips,
		     const struct packet_report *report);

/* Of the data that @tuple has sent; 0: there is none, or another flow has its place. */
int64_t round_trips_average_ns(const struct round_trips *trips,
			       const struct packet_tuple *tuple);

#endif
