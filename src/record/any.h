/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records of any type. A caller's struct may be smaller than this library's, or larger:
 * members that it lacks are zero.
 */
#ifndef NETOBS_RECORD_ANY_H
#define NETOBS_RECORD_ANY_H

#include <netobs/flow.h>
#include <netobs/stats.h>

#include <stdbool.h>

union any_record {
	struct netobs_record record;
	struct netobs_flow flow;
	struct netobs_stats_record stats;
};

/**
 * @return size of this library's struct for records of @type; 0: the type is unknown
 */
size_t record_size(unsigned int type);

/**
 * @return @record as this library's struct: itself, or @copy where its own is smaller;
 *         NULL: the type is unknown, or a size is impossible
 */
const struct netobs_record *record_view(const struct netobs_record *record,
					union any_record *copy);

/**
 * The flow that @record is the header of.
 */
static inline const struct netobs_flow *as_flow(const struct netobs_record *record)
{
	return (const struct netobs_flow *)record;
}

/**
 * @return as record_view(); NULL also where it is no flow
 */
static inline const struct netobs_flow *flow_view(const struct netobs_flow *flow,
						  union any_record *copy)
{
	const struct netobs_record *record = record_view(&flow->record, copy);

	return record && record->type == NETOBS_RECORD_FLOW ? as_flow(record) :
							      NULL;
}

/**
 * @return point @i, which a flow has, of a library whose points may be larger
 */
static inline const struct netobs_point *
flow_point(const struct netobs_flow *flow, uint32_t i)
{
	return (const void *)((const char *)flow->points +
			      (size_t)i * flow->point_size);
}

/**
 * Clear the bits of members that are beyond the flow's size: an older program that copies
 * a record copies these bits.
 */
void flow_clear_unknown(struct netobs_flow *flow);

/**
 * As netobs_record_json(), of what record_view() returned: of any type, and of each.
 */
int record_json(const struct netobs_record *record, char *buf, size_t size);
int flow_record_json(const struct netobs_record *record, char *buf, size_t size);
int stats_record_json(const struct netobs_record *record, char *buf, size_t size);

#endif
