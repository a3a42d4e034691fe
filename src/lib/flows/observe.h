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

#endif
