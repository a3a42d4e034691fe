/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Sums up the packets that the points of one namespace and direction saw: interfaces that are
 * stacked on one another saw the same packets, other interfaces share them. See observe.h.
 */
#ifndef NETOBS_FLOWS_SIDES_H
#define NETOBS_FLOWS_SIDES_H

#include "host/host.h"
#include "host/topology.h"
#include "flow_table.h"

enum { ANY_SIGHT = UINT8_MAX };

/* The points of one namespace and direction, which are looked at together. */
struct side {
	const struct flow *flow;
	const struct host *host;
	const struct point *points;
	uint32_t n_points;
	uint8_t with; /* points of any of these sights, 1 << enum sight; or ANY_SIGHT */
	uint8_t without; /* and of none of these */
	const struct point *before; /* only points that may come before this one; NULL: all */
	bool are_copies;
};

/* The side that begins with point @i, of all sights: points are sorted by direction and namespace. */
struct side side_at(const struct flow *flow, const struct host *host, uint32_t i);

struct volume side_total(const struct side *side);

/* @return the packets that a point of SIGHT_BEYOND was the first to see */
struct volume side_first_sights(const struct flow *flow, const struct host *host,
				const struct point *point);

/* Points of a flow: the interface of one, and how the volumes of several are combined. */

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

/*
 * Finds which packets of a point no other point saw before, where other points may have seen them
 * (SIGHT_BEYOND).
 */

/* @point: of SIGHT_BEYOND, and not on the way in through a tunnel's device */
struct volume first_sights_find(const struct flow *flow, const struct host *host,
				const struct point *point);

/*
 * Subtract from @seen the packets that interfaces above @point sent through it, since those interfaces
 * have seen them: outgoing packets of other namespaces, and packets that one macvlan sends to another.
 */
void first_sights_leave_out_above(const struct flow *flow,
				  const struct host *host,
				  const struct point *point, struct volume *seen);

/* Packets that tc redirects to an ifb on their way out: the ifb returns them to the interface that they were to
 * leave by, so they pass that point twice. */

/** @return the packets that ifbs of @netns have returned */
struct volume returned_sum(const struct flow *flow, const struct host *host,
			   uint16_t netns);

/** Remove from @left, the packets that left @point's namespace, the second pass of those that an ifb returned. */
void returned_leave_out(const struct flow *flow, const struct host *host,
			const struct point *point, struct volume *left);

#endif
