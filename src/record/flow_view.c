// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "flow_view.h"

#include "base/util.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Version 0.1, the first, has that much. */
enum {
	FLOW_SIZE_MIN = offsetof(struct netobs_flow, points) + sizeof(void *),
	POINT_SIZE_MIN = offsetof(struct netobs_point, name) + sizeof(void *),
};

const struct netobs_flow *flow_view(const struct netobs_flow *flow,
				    struct netobs_flow *copy)
{
	if (flow->sz < FLOW_SIZE_MIN)
		return NULL;
	if (flow->n_points && (!flow->points || flow->point_size < POINT_SIZE_MIN))
		return NULL;
	if (flow->sz >= sizeof(*flow))
		return flow;
	*copy = (struct netobs_flow){ 0 };
	memcpy(copy, flow, flow->sz);
	return copy;
}

const struct netobs_point *netobs_flow_point(const struct netobs_flow *flow,
					     uint32_t i)
{
	if (!flow || i >= flow->n_points)
		return NULL;
	return (const void *)((const char *)flow->points +
			      (size_t)i * flow->point_size);
}

struct netobs_point flow_view_point(const struct netobs_flow *flow, uint32_t i)
{
	struct netobs_point point = { 0 };

	memcpy(&point, netobs_flow_point(flow, i),
	       min_u64(flow->point_size, sizeof(point)));
	return point;
}

/* The record, its points, and their names, one behind the other. */
static struct netobs_flow *copy_all(const struct netobs_flow *flow, size_t size)
{
	struct netobs_flow *copy = malloc(size);
	struct netobs_point *points;
	char *name;

	if (!copy)
		return NULL;
	points = (struct netobs_point *)(copy + 1);
	name = (char *)(points + flow->n_points);
	*copy = *flow;
	copy->sz = sizeof(*copy);
	copy->point_size = sizeof(*points);
	copy->points = flow->n_points ? points : NULL;
	for (uint32_t i = 0; i < flow->n_points; i++) {
		points[i] = flow_view_point(flow, i);
		if (!points[i].name)
			continue;
		points[i].name =
			memcpy(name, points[i].name, strlen(points[i].name) + 1);
		name += strlen(name) + 1;
	}
	return copy;
}

int netobs_flow_dup(const struct netobs_flow *flow, struct netobs_flow **ret_flow)
{
	struct netobs_flow copy, *made;
	const struct netobs_flow *known;
	size_t size;

	if (!flow || !ret_flow)
		return -EINVAL;
	known = flow_view(flow, &copy);
	if (!known)
		return -EINVAL;
	size = sizeof(*made) + known->n_points * sizeof(struct netobs_point);
	for (uint32_t i = 0; i < known->n_points; i++) {
		const char *name = netobs_flow_point(known, i)->name;

		size += name ? strlen(name) + 1 : 0;
	}
	made = copy_all(known, size);
	if (!made)
		return -ENOMEM;
	*ret_flow = made;
	return 0;
}

void netobs_flow_free(struct netobs_flow *flow)
{
	free(flow);
}
