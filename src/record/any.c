// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "any.h"

#include "base/util.h"
#include "fields.h"

#include <errno.h>
#include <string.h>

static int flow_record_json(const struct netobs_record *record, char *buf,
			    size_t size)
{
	return netobs_flow_json(as_flow(record), buf, size);
}

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

const struct netobs_record *record_view(const struct netobs_record *record,
					union any_record *copy)
{
	size_t size;

	if (record->sz < sizeof(*record))
		return NULL;
	size = record_size(record->type);
	if (record->type == NETOBS_RECORD_FLOW && !flow_is_valid(as_flow(record)))
		return NULL;
	if (!size || record->sz >= size)
		return size ? record : NULL;
	memset(copy, 0, size);
	memcpy(copy, record, record->sz);
	if (record->type == NETOBS_RECORD_FLOW)
		flow_clear_unknown(&copy->flow);
	return &copy->record;
}

int netobs_record_json(const struct netobs_record *record, char *buf, size_t size)
{
	union any_record copy;

	if (!record || !buf)
		return -EINVAL;
	record = record_view(record, &copy);
	if (!record)
		return -EINVAL;
	return types[record->type].json(record, buf, size);
}

/* ---- Flows ------------------------------------------------------------------------- */

/* Version 0.1, the first, has that much. */
enum {
	FLOW_SIZE_MIN = offsetof(struct netobs_flow, points) + sizeof(void *),
	POINT_SIZE_MIN = offsetof(struct netobs_point, name) + sizeof(void *),
};

bool flow_is_valid(const struct netobs_flow *flow)
{
	if (flow->sz < FLOW_SIZE_MIN)
		return false;
	return !flow->n_points ||
	       (flow->points && flow->point_size >= POINT_SIZE_MIN);
}

#define POINT_FIELD(...)
#define FIELD(member, type, bit, ...)                                    \
	if (flow->sz <                                                   \
	    offsetof(struct netobs_flow, member) + sizeof(flow->member)) \
		flow->has &= ~(bit);

void flow_clear_unknown(struct netobs_flow *flow)
{
#include "fields.def"
}

static const struct netobs_point *point_at(const struct netobs_flow *flow,
					   uint32_t i)
{
	return (const void *)((const char *)flow->points +
			      (size_t)i * flow->point_size);
}

const struct netobs_point *netobs_flow_point(const struct netobs_flow *flow,
					     uint32_t i)
{
	return flow && i < flow->n_points ? point_at(flow, i) : NULL;
}

size_t flow_copy_size(const struct netobs_flow *flow, uint32_t points_max,
		      size_t name_max)
{
	uint64_t n = min_u64(flow->n_points, points_max);
	size_t size = sizeof(*flow) + n * sizeof(struct netobs_point);

	for (uint32_t i = 0; i < n; i++) {
		const char *name = point_at(flow, i)->name;

		size += (name ? strnlen(name, name_max - 1) : 0) + 1;
	}
	return size;
}

void flow_copy(const struct netobs_flow *flow, uint32_t points_max,
	       size_t name_max, struct netobs_flow *copy)
{
	uint32_t n_points = (uint32_t)min_u64(flow->n_points, points_max);
	struct netobs_point *points = (struct netobs_point *)(copy + 1);
	char *name = (char *)(points + n_points);

	*copy = *flow;
	copy->sz = sizeof(*copy);
	copy->n_points = n_points;
	copy->point_size = sizeof(*points);
	copy->points = n_points ? points : NULL;
	for (uint32_t i = 0; i < n_points; i++) {
		size_t len;

		/* As this library's struct. */
		points[i] = (struct netobs_point){ 0 };
		memcpy(&points[i], point_at(flow, i),
		       min_u64(flow->point_size, sizeof(*points)));
		len = points[i].name ? strnlen(points[i].name, name_max - 1) : 0;
		memcpy(name, points[i].name ?: "", len);
		name[len] = '\0';
		points[i].name = points[i].name ? name : NULL;
		name += len + 1;
	}
}

int netobs_flow_dup(const struct netobs_flow *flow, struct netobs_flow **ret_flow)
{
	struct netobs_flow *made;
	union any_record copy;

	if (!flow || !ret_flow)
		return -EINVAL;
	flow = flow_view(flow, &copy);
	if (!flow)
		return -EINVAL;
	made = malloc(flow_copy_size(flow, UINT32_MAX, PTRDIFF_MAX));
	if (!made)
		return -ENOMEM;
	flow_copy(flow, UINT32_MAX, PTRDIFF_MAX, made);
	*ret_flow = made;
	return 0;
}

void netobs_flow_free(struct netobs_flow *flow)
{
	free(flow);
}
