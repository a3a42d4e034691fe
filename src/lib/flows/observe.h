/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The actual traffic of a flow, given what each point saw of it.
 *
 * A packet may cross several points and is counted once, where it was seen first: topology.h says
 * where that is. The counts of such points add up. Copies that are made behind them, by a bridge
 * that floods or a mirror, add nothing.
 *
 * Some points may see packets both for the first time and again, such as a bridge of which one
 * port is observed. There the flow decides, since all its packets take one way: the first sights
 * count, or the packets that those points saw, if these are more:
 *
 * - interfaces stacked on one another (a bond's slave, the bond, a VLAN on it)
 *   pass the same packets from level to level. Out of the host, the highest
 *   level comes first; into it, the largest counts;
 * - interfaces that are not stacked share the packets of one direction: they add
 *   up. Of outgoing packets to a group address each interface sends a copy: the largest counts;
 * - what interfaces of other namespaces sent through one below them, and what macvlans sent to one
 *   another through it, was seen above: it counts there;
 * - the two directions of one namespace, and different namespaces, are stations
 *   of one way: the largest counts.
 *
 * Of what comes in through a tunnel's device, the part counts that was seen neither in that tunnel nor in
 * another namespace, on its way out or first. A packet in a tunnel has its outer headers among its bytes: a
 * flow has the bytes of where it was seen first.
 *
 * Of what comes out of a region in which nothing is observed (topology.h), the part counts that
 * did not go into it. What comes out at several points adds up, unless a bridge in the region may
 * send a copy to each; packets that came out earlier count as having gone in, since they may have
 * done so unseen.
 *
 * These rules also decide about a flow that was seen nowhere first: address translation gave it
 * another tuple behind the first point.
 *
 * In randomly sampled flows, a packet that was not sampled at one point may have been at another,
 * so only first sights can be added up without bias: flows that were seen nowhere first count for
 * nothing, translated ones among them. Where the flow decides, the largest of several random
 * counts is more than their mean, most of all for flows of few packets: such packets are
 * `inferred`, as always.
 *
 * All of it is made of sums and maxima of counters that only grow, so the
 * result only grows: no interval takes back what an earlier one reported.
 */
#ifndef NETOBS_FLOWS_OBSERVE_H
#define NETOBS_FLOWS_OBSERVE_H

#include "flow_table.h"
#include "host/host.h"
#include "host/topology.h"

struct host;

/*
 * For two flows that differ in their tags alone: whether one of them is in an overlay that packets
 * enter and leave in a namespace where the other one was seen, or in an adjacent namespace.
 */
bool observe_are_adjacent(const struct flow *a, const struct flow *b,
			  const struct host *host);

/* All traffic of the flow; never less than flow->entered. */
void observe_total(const struct flow *flow, const struct host *host,
		   struct volume *ret_total);

/* ---- Sides ------------------------------------------------------------------------------- */

/*
 * Sums up the packets that the points of one namespace and direction saw: interfaces that are
 * stacked on one another saw the same packets, other interfaces share them. See observe.h.
 */

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
