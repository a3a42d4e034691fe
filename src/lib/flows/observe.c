/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "observe.h"

#include "sighting.h"

/* @return packets that came in at @netns */
static struct volume sum_arrived(const struct flow *flow,
				 const struct host *host, uint16_t netns)
{
	struct volume total = { 0 };

	for (uint32_t i = 0; i < flow->n_points;) {
		struct side side = side_at(flow, host, i);

		i += side.n_points;
		if (side.points->netns != netns || side.points->egress)
			continue;
		side.with = ANY_SIGHT;
		total = side_total(&side);
	}
	return total;
}

/*
 * @return packets that left @netns before tc sent them to another of its interfaces: the kernel
 *         notes the first interface as the one that they came in through; the same holds for
 *         packets from an ifb
 */
static struct volume sum_sent_on(const struct flow *flow,
				 const struct host *host, uint16_t netns)
{
	struct volume sum = returned_sum(flow, host, netns);

	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];

		if (point->netns == netns && point->egress &&
		    point->sights & 1 << SIGHT_FIRST)
			volume_add(&sum, &point->seen);
	}
	return sum;
}

/*
 * @return packets that leave a namespace and came in there, but not as this flow: address
 *         translation changed them, or, with a filter, they did not match when they came in. Of
 *         these, as many as one interface sent, because several may send copies.
 */
static struct volume changed_in(const struct side *side)
{
	const struct flow *flow = side->flow;
	const struct host *host = side->host;
	uint16_t netns = side->points->netns;
	struct volume in, sent, out = { 0 };
	struct side forwarded = *side;

	if (!side->points->egress || !host->netns[netns].sees_all_arrivals)
		return out;
	in = sum_arrived(flow, host, netns);
	if (in.packets && !host->is_filtered)
		return out;
	forwarded.with = 1 << SIGHT_FORWARDED;
	forwarded.without = ~forwarded.with;
	forwarded.are_copies |= in.packets != 0;
	out = side_total(&forwarded);
	sent = sum_sent_on(flow, host, netns);
	out = volume_less(out, &sent);
	return volume_less(out, &in);
}

static struct volume sum_changed(const struct flow *flow, const struct host *host)
{
	struct volume total = { 0 };

	for (uint32_t i = 0; i < flow->n_points;) {
		struct side side = side_at(flow, host, i);
		struct volume part = changed_in(&side);

		volume_add(&total, &part);
		i += side.n_points;
	}
	return total;
}

/* @return whether the flow decides which packets of the side count: else flow->entered has them all */
static bool is_unclear(const struct side *side)
{
	uint8_t sights = 0;

	for (uint32_t i = 0; i < side->n_points; i++)
		sights |= side->points[i].sights;
	return sights & ~(1 << SIGHT_FIRST | SIGHTS_FURTHER);
}

/*
 * @return the largest volume of all sides where the flow decides, since the order in which packets
 *         pass them is unknown
 */
static struct volume find_largest(const struct flow *flow,
				  const struct host *host, uint8_t sights)
{
	struct volume total = { 0 };

	for (uint32_t i = 0; i < flow->n_points;) {
		struct side side = side_at(flow, host, i);
		struct volume part;

		i += side.n_points;
		if (!is_unclear(&side))
			continue;
		side.with = sights;
		side.are_copies |= side.points->egress &&
				   host->netns[side.points->netns].copies_unseen;
		part = side_total(&side);
		returned_leave_out(flow, host, side.points, &part);
		volume_max(&total, &part);
	}
	return total;
}

/*
 * @return whether all packets of the flow's only point count. A packet that comes back there
 * from an ifb does not: its first sight was at this point, too.
 */
static bool is_first_alone(const struct flow *flow, const struct host *host)
{
	uint8_t sights = flow->points[0].sights;

	if (!(sights & SIGHTS_FURTHER))
		return true;
	return !flow->is_random &&
	       (host->is_filtered || !(sights & 1 << SIGHT_FIRST));
}

void observe_total(const struct flow *flow, const struct host *host,
		   struct volume *ret_total)
{
	struct volume total = flow->entered, most = { 0 }, part;
	uint8_t all_sights = 0;

	if (flow->n_points == 1 && is_first_alone(flow, host)) {
		*ret_total = flow->points[0].seen;
		return;
	}
	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];

		if (!point_is_beyond(point)) {
			all_sights |= point->sights;
			continue;
		}
		part = side_first_sights(flow, host, point);
		volume_add(&total, &part);
		all_sights |= 1 << (part.packets ? SIGHT_FIRST : SIGHT_AGAIN);
	}
	if (all_sights & 1 << SIGHT_FORWARDED && !flow->is_random) {
		part = sum_changed(flow, host);
		volume_add(&total, &part);
	}
	if (all_sights & ~(1 << SIGHT_FIRST | SIGHTS_FURTHER)) {
		part = find_largest(flow, host, (uint8_t)~SIGHTS_FURTHER);
		volume_max(&total, &part);
	}
	/* Packets that were seen nowhere first: each passes a point once. */
	for (uint32_t i = 0;
	     !total.packets && !flow->is_random && i < flow->n_points; i++) {
		part = flow->points[i].seen;
		returned_leave_out(flow, host, &flow->points[i], &part);
		first_sights_leave_out_above(flow, host, &flow->points[i], &part);
		volume_max(&most, &part);
	}
	*ret_total = total.packets ? total : most;
}

/*
 * @return whether the overlay of @inside is entered and left in @netns: by routes, not by a bridge
 */
static bool is_entered_at(const struct flow *inside, const struct host *host,
			  uint16_t netns)
{
	if (overlays_are_routed(host, &inside->key, netns))
		return true;
	for (uint32_t i = 0; i < inside->n_points; i++) {
		const struct netif *netif = point_netif(host, &inside->points[i]);

		if (inside->points[i].netns == netns && netif &&
		    netif->type == LINK_TYPE_BRIDGE)
			return true;
	}
	return false;
}

bool observe_are_adjacent(const struct flow *a, const struct flow *b,
			  const struct host *host)
{
	const struct flow *inside = a->key.tunnel ? a : b;
	const struct flow *outside = a->key.tunnel ? b : a;

	if (!inside->key.tunnel || outside->key.tunnel)
		return false;
	for (uint32_t i = 0; i < outside->n_points; i++) {
		const struct point *point = &outside->points[i];
		const struct netif *netif = point_netif(host, point);

		if (is_entered_at(inside, host, point->netns) ||
		    (netif && netif->type == LINK_TYPE_PAIR &&
		     is_entered_at(inside, host, netif->link_netns)))
			return true;
	}
	return false;
}
