/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Journeys whose time is spent in TCP and in waiting for the reader, and sums of them. */
#ifndef NETOBS_HARNESS_LIB_JOURNEYS_H
#define NETOBS_HARNESS_LIB_JOURNEYS_H

#include "lib_test.h"

#include <netobs/journeys.h>

static inline struct netobs_journey make_journey(uint64_t tcp_ns,
						 uint64_t reader_ns)
{
	struct netobs_journey journey = {
		.record = { .sz = sizeof(journey),
			    .type = NETOBS_RECORD_JOURNEY,
			    .has = NETOBS_JOURNEY_HAS_READ |
				   NETOBS_JOURNEY_HAS_INITIATOR,
			    .time_ns = 1700000000000000000 },
		.length = 1000,
		.n_attempts = 1,
	};

	journey.part_ns[NETOBS_JOURNEY_TCP] = tcp_ns;
	journey.part_ns[NETOBS_JOURNEY_READER] = reader_ns;
	journey.end_ns = journey.record.time_ns + (int64_t)(tcp_ns + reader_ns);
	return journey;
}

static inline struct netobs_journeys *make_sums(void)
{
	struct netobs_journeys *all = NULL;

	assert_int_equal(netobs_journeys_new(&all), 0);
	return all;
}

static inline void add_journey(struct netobs_journeys *all, uint64_t tcp_ns,
			       uint64_t reader_ns)
{
	const struct netobs_journey journey = make_journey(tcp_ns, reader_ns);

	assert_int_equal(netobs_journeys_add(all, &journey), 0);
}

#endif
