// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "any.h"

#include "base/util.h"
#include "fields.h"

#include <errno.h>
#include <string.h>

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

size_t flow_copy_size(const struct netobs_flow *flow, uint32_t n_points,
		      size_t name_max)
{
	size_t size = sizeof(*flow) + n_points * sizeof(struct netobs_point);

	for (uint32_t i = 0; i < n_points; i++) {
		const char *name = point_at(flow, i)->name;

		size += (name ? strnlen(name, name_max - 1) : 0) + 1;
	}
	return size;
}

void flow_copy(const struct netobs_flow *flow, uint32_t n_points,
	       size_t name_max, struct netobs_flow *copy)
{
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
	made = malloc(flow_copy_size(flow, flow->n_points, PTRDIFF_MAX));
	if (!made)
		return -ENOMEM;
	flow_copy(flow, flow->n_points, PTRDIFF_MAX, made);
	*ret_flow = made;
	return 0;
}

void netobs_flow_free(struct netobs_flow *flow)
{
	free(flow);
}
