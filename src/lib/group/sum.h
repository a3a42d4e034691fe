/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Sums over flows: struct netobs_group_sum. */
#ifndef NETOBS_GROUP_SUM_H
#define NETOBS_GROUP_SUM_H

#include <netobs/group.h>

struct netobs_group_sum sum_of_flow(const struct netobs_flow *flow);

/** The time and the sampling stay. */
void sum_subtract(struct netobs_group_sum *sum,
		  const struct netobs_group_sum *part);

/** @return the mean round-trip time; 0: there are no samples */
static inline uint64_t sum_rtt_ns(const struct netobs_group_sum *sum)
{
	return sum->rtt_samples ? sum->rtt_sum_ns / sum->rtt_samples : 0;
}

#endif
