/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Groups of flows, up to a limit. Beyond it, the half with fewer bytes is added to the sum of
 * others, so that sums are exact and the largest groups stay, whenever they come.
 */
#ifndef NETOBS_GROUP_TABLE_H
#define NETOBS_GROUP_TABLE_H

#include "base/slots.h"
#include "keys.h"

/* ---- Sums over flows ----------------------------------------------------------------- */

struct netobs_group_sum sum_of_flow(const struct netobs_flow *flow);

/** Subtract @part from @sum, except its times and its sampling. */
void sum_subtract(struct netobs_group_sum *sum,
		  const struct netobs_group_sum *part);

/** @return the mean round-trip time; 0: there are no samples */
static inline uint64_t sum_rtt_ns(const struct netobs_group_sum *sum)
{
	return sum->rtt_samples ? sum->rtt_sum_ns / sum->rtt_samples : 0;
}

/* ---- Groups -------------------------------------------------------------------------- */

struct group {
	struct netobs_group public;
	uint8_t value[]; /* of table->value_size bytes */
};

struct group_table {
	size_t value_size; /* a multiple of 8, as is the next one */
	size_t key_size;   /* the compared part of a value */
	size_t most;
	struct slots groups;		/* see group_table_at() */
	struct netobs_group_sum others; /* sum of the groups that found no room */
	uint64_t evicted_bytes; /* at most so many of them are of one group */
};

/**
 * @key_size    of a struct group_keys, as
 * @value_size
 * @most        groups; at least 1
 * @return 0; -ENOMEM
 */
int group_table_init(struct group_table *table, size_t key_size,
		     size_t value_size, size_t most);

/** @return the group in the table; valid until the next call */
struct group *group_table_add(struct group_table *table, const uint8_t *value,
			      const struct netobs_group_sum *sum);

/** Add the groups that another table had no room for. */
void group_table_add_others(struct group_table *table,
			    const struct group_table *from);

static inline struct group *group_table_at(const struct group_table *table,
					   uint32_t i)
{
	return slots_at(&table->groups, i);
}

void group_table_clear(struct group_table *table);
void group_table_free(struct group_table *table);

#endif
