// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "any.h"

#include "base/util.h"
#include "fields.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	size_t size;
	int (*json)(const struct netobs_record *record, char *buf, size_t size);
} types[NETOBS_RECORD_TYPES] = {
	[NETOBS_RECORD_FLOW] = { "flow", sizeof(struct netobs_flow),
				 flow_record_json },
	[NETOBS_RECORD_STATS] = { "stats", sizeof(struct netobs_stats_record),
				  stats_record_json },
};

const char *netobs_record_type_name(unsigned int type)
{
	return type < NETOBS_RECORD_TYPES ? types[type].name : NULL;
}

size_t record_size(unsigned int type)
{
	return type < NETOBS_RECORD_TYPES ? types[type].size : 0;
}

/* Version 0.1, the first, has that much. */
enum {
	FLOW_SIZE_MIN = offsetof(struct netobs_flow, points) + sizeof(void *),
	POINT_SIZE_MIN = offsetof(struct netobs_point, name) + sizeof(void *),
};

#define POINT_FIELD(...)
#define FIELD(member, type, bit, ...)                                    \
	if (flow->sz <                                                   \
	    offsetof(struct netobs_flow, member) + sizeof(flow->member)) \
		flow->has &= ~(bit);

void flow_clear_unknown(struct netobs_flow *flow)
{
#include "fields.def"
}

/* A flow has what version 0.1 had, and the points that it counts. */
const struct netobs_record *record_view(const struct netobs_record *record,
					union any_record *copy)
{
	const struct netobs_flow *flow = as_flow(record);
	size_t size;

	if (record->sz < sizeof(*record) || record->type >= NETOBS_RECORD_TYPES)
		return NULL;
	if (record->type == NETOBS_RECORD_FLOW &&
	    (flow->sz < FLOW_SIZE_MIN ||
	     (flow->n_points &&
	      (!flow->points || flow->point_size < POINT_SIZE_MIN))))
		return NULL;
	size = types[record->type].size;
	if (record->sz >= size)
		return record;
	memset(copy, 0, size);
	memcpy(copy, record, record->sz);
	if (record->type == NETOBS_RECORD_FLOW)
		flow_clear_unknown(&copy->flow);
	return &copy->record;
}

int record_json(const struct netobs_record *record, char *buf, size_t size)
{
	return types[record->type].json(record, buf, size);
}

int netobs_record_json(const struct netobs_record *record, char *buf, size_t size)
{
	union any_record copy;

	if (!record || !buf)
		return -EINVAL;
	record = record_view(record, &copy);
	return record ? record_json(record, buf, size) : -EINVAL;
}

const struct netobs_point *netobs_flow_point(const struct netobs_flow *flow,
					     uint32_t i)
{
	return flow && i < flow->n_points ? flow_point(flow, i) : NULL;
}
