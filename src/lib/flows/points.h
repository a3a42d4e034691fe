/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Points of a flow: the interface of one, and how the volumes of several are combined. */
#ifndef NETOBS_FLOWS_POINTS_H
#define NETOBS_FLOWS_POINTS_H

#include "flow_table.h"
#include "host/host.h"
#include "host/topology.h"

/* NULL: the interface is not known. */
static inline const struct netif *point_netif(const struct host *host,
					      const struct point *point)
{
	return host_find(host, point->netns, point->ifindex);
}

/* The counters of the other points are needed to find how much of this point's packets were seen here first. */
static inline bool point_is_beyond(const struct point *point)
{
	return point->sights == 1 << SIGHT_BEYOND;
}

/* @return whether both are of one namespace and direction */
static inline bool point_is_beside(const struct point *a, const struct point *b)
{
	return a->netns == b->netns && a->egress == b->egress;
}

/* @return whether points of this direction see copies, as each interface sends one */
static inline bool flow_is_group_copy(const struct flow *flow, bool is_egress)
{
	return is_egress &&
	       topology_is_to_group(&flow->key,
				    flow->has_mac ? flow->macs : NULL);
}

/* Copies of the same packets count once. */
static inline void volume_combine(struct volume *sum, const struct volume *part,
				  bool is_copy)
{
	if (is_copy)
		volume_max(sum, part);
	else
		volume_add(sum, part);
}

#endif
