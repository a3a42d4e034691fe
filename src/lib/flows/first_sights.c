/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "observe.h"

/* Nothing is observed in the namespace. */
static bool is_dark(const struct host *host, uint16_t netns)
{
	return netns < host->n_netns && host->netns[netns].region != NETNS_NONE;
}

/* Packets may pass from one to the other unseen. */
static bool is_joined(const struct host *host, uint16_t a, uint16_t b)
{
	return a < host->n_netns && b < host->n_netns &&
	       host->netns[a].mesh == host->netns[b].mesh;
}

/* @return whether packets leave by @point, an interface directly above the one with @ifindex */
static bool is_sent_to(const struct host *host, const struct point *point,
		       uint16_t netns, uint32_t ifindex)
{
	const struct netif *netif = point->egress ? point_netif(host, point) :
						    NULL;

	return netif && netif->link_netns == netns && netif->link == ifindex &&
	       netif_has_lower(netif);
}

/*
 * @return whether another point saw packets in the peer's namespace, in one joined to it, or on
 * their way there
 */
static bool is_seen_at_peer(const struct flow *flow, const struct host *host,
			    const struct point *point, uint16_t peers_netns)
{
	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *other = &flow->points[i];
		const struct netif *netif =
			other->egress ? point_netif(host, other) : NULL;

		if (other != point &&
		    (is_joined(host, other->netns, peers_netns) ||
		     (netif && is_joined(host, netif->link_netns, peers_netns))))
			return true;
	}
	return false;
}

static bool is_above(const struct host *host, const struct netif *netif,
		     const struct netif *lower)
{
	for (int i = 0; netif && i < NESTING_MAX; i++) {
		if (netif == lower)
			return true;
		netif = netif_has_lower(netif) ? topology_linked(host, netif) :
						 NULL;
	}
	return false;
}

static uint16_t region_of(const struct host *host, const struct point *point)
{
	return regions_next(host, point->netns, point_netif(host, point),
			    point->egress ? EGRESS : INGRESS);
}

/*
 * @return whether @point is a port of a bridge that may also send copies by ports that are not
 * observed
 */
static bool may_be_copied(const struct host *host, const struct point *point)
{
	const struct netif *netif = point_netif(host, point);
	const struct netif *master =
		netif ? host_find(host, point->netns, netif->master) : NULL;

	return master && master->type == LINK_TYPE_BRIDGE &&
	       !host->netns[point->netns].sees_all_departures;
}

/* @return packets that came in at @netns and may have left by an unobserved interface */
static struct volume left_unseen(const struct flow *flow,
				 const struct host *host, uint16_t netns)
{
	struct volume in = { 0 }, out = { 0 };

	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];

		if (point->netns != netns)
			continue;
		if (!point->egress)
			volume_add(&in, &point->seen);
		else if (point->sights & 1 << SIGHT_FORWARDED &&
			 !may_be_copied(host, point))
			volume_add(&out, &point->seen);
	}
	return volume_less(in, &out);
}

/*
 * @return whether packets that are in @netns may come in through @lower later, by a macvlan that is
 * not observed
 */
static bool leads_to(const struct host *host, uint16_t netns,
		     const struct netif *lower)
{
	const uint32_t n = host->forwards_unseen ? host->n_netns : 0;

	for (uint16_t i = 0; i < n; i++)
		if (is_joined(host, netns, i) &&
		    topology_forwards_unseen(host, i, lower))
			return true;
	return false;
}

/* Subtract from @sent the packets that entered @netns from @lower: only a loop would bring them back there. */
static void leave_out_below(const struct flow *flow, const struct host *host,
			    uint16_t netns, const struct netif *lower,
			    struct volume *sent)
{
	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];
		const struct netif *netif = point_netif(host, point);

		if (!point->egress && point->netns == netns && netif &&
		    netif->type == LINK_TYPE_MACVLAN &&
		    topology_linked(host, netif) == lower)
			*sent = volume_less(*sent, &point->seen);
	}
}

/* Count those packets that @point saw and that macvlans may send through @lower of @netns. Points are sorted. */
static struct volume sent_above(const struct flow *flow, const struct host *host,
				const struct point *point, uint16_t netns,
				const struct netif *lower)
{
	bool is_next = point > flow->points && point_is_beside(&point[-1], point);
	struct volume sent = { 0 };

	if (point->egress) {
		const bool is_direct =
			is_sent_to(host, point, netns, lower->ifindex);

		if (!is_direct && !leads_to(host, region_of(host, point), lower))
			return sent;
		sent = point->seen;
		returned_leave_out(flow, host, point, &sent);
		if (!is_direct)
			leave_out_below(flow, host, point->netns, lower, &sent);
	} else if (!is_next && point->netns != netns &&
		   leads_to(host, point->netns, lower)) {
		sent = left_unseen(flow, host, point->netns);
	}
	return sent;
}

/*
 * @return whether packets came in at @point and may have left through @lower by an unobserved
 * macvlan
 */
static bool is_forwarded_to(const struct host *host, const struct point *point,
			    const struct netif *lower)
{
	return !point->egress &&
	       topology_forwards_unseen(host, point->netns, lower) &&
	       !is_above(host, point_netif(host, point), lower);
}

/*
 * Subtract from @in, the packets that came in through @lower, those that did not come from outside.
 * Macvlans send to one another through their lower interface, on its way in, and to others through
 * it on its way out: so packets that they sent, and that did not leave through it, came in again.
 */
static void leave_out_above(const struct flow *flow, const struct host *host,
			    uint16_t netns, const struct netif *lower,
			    struct volume *in)
{
	struct volume sent = { 0 }, left = { 0 }, part;

	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];

		if (is_forwarded_to(host, point, lower)) {
			*in = (struct volume){ 0 };
			return;
		}
		part = sent_above(flow, host, point, netns, lower);
		volume_add(&sent, &part);
		if (point->egress && point->netns == netns &&
		    point->ifindex == lower->ifindex)
			volume_add(&left, &point->seen);
	}
	sent = volume_less(sent, &left);
	*in = volume_less(*in, &sent);
}

/* @return whether an upper interface saw packets on their way out */
static bool is_seen_higher(const struct flow *flow, const struct host *host,
			   const struct point *point)
{
	const struct netif *netif = point_netif(host, point);

	for (uint32_t i = 0; netif && i < flow->n_points; i++) {
		const struct point *other = &flow->points[i];
		const struct netif *upper = point_netif(host, other);
		bool is_higher = other->egress && other->netns == point->netns &&
				 upper && upper->stack == netif->stack &&
				 upper->level > netif->level;

		if (is_higher ||
		    is_sent_to(host, other, point->netns, point->ifindex))
			return true;
	}
	return false;
}

/* @return packets that came in at @point and that no other point saw before */
static struct volume seen_first(const struct flow *flow, const struct host *host,
				const struct point *point)
{
	const struct netif *netif = point_netif(host, point);
	struct volume first = point->seen;
	uint16_t netns = point->netns;

	/* Interfaces below that are not observed pass the same packets on their way in. */
	for (int i = 0; netif && first.packets && i < NESTING_MAX; i++) {
		if (is_dark(host, netns))
			break;
		leave_out_above(flow, host, netns, netif, &first);
		if (netif->type == LINK_TYPE_PAIR &&
		    !is_dark(host, netif->link_netns) &&
		    is_seen_at_peer(flow, host, point, netif->link_netns))
			return (struct volume){ 0 };
		netns = netif->link_netns;
		netif = netif_has_lower(netif) ? topology_linked(host, netif) :
						 NULL;
	}
	return first;
}

/* @return packets that entered the region. Points are sorted by direction, then namespace. */
static struct volume sum_entered(const struct flow *flow,
				 const struct host *host, uint16_t region)
{
	struct volume sum = { 0 }, part;

	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];
		bool is_next = i && point_is_beside(&point[-1], point);

		if (point->egress &&
		    is_joined(host, region_of(host, point), region)) {
			volume_combine(&sum, &point->seen,
				       flow_is_group_copy(flow, true));
		} else if (!point->egress && !is_next &&
			   is_joined(host, point->netns, region)) {
			part = left_unseen(flow, host, point->netns);
			volume_add(&sum, &part);
		}
	}
	return sum;
}

/* @return packets that left the region. Interfaces may have copies of a bridge: the largest counts. */
static struct volume sum_left(const struct flow *flow, const struct host *host,
			      uint16_t region)
{
	struct volume sum = { 0 }, part;

	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];

		if (point->egress || !point_is_beyond(point) ||
		    region_of(host, point) != region)
			continue;
		part = seen_first(flow, host, point);
		volume_combine(&sum, &part, host->netns[region].floods);
	}
	return sum;
}

/*
 * @return packets that left the region and had not entered it at an observed point: a process in it
 *         sent them. All of them count at the first of its points.
 */
static struct volume new_of_region(const struct flow *flow,
				   const struct host *host,
				   const struct point *point)
{
	uint16_t region = region_of(host, point);
	struct volume entered;

	for (const struct point *other = flow->points; other < point; other++)
		if (!other->egress && point_is_beyond(other) &&
		    region_of(host, other) == region)
			return (struct volume){ 0 };
	entered = sum_entered(flow, host, region);
	return volume_less(sum_left(flow, host, region), &entered);
}

struct volume first_sights_find(const struct flow *flow, const struct host *host,
				const struct point *point)
{
	if (!point->egress)
		return region_of(host, point) != NETNS_NONE ?
			       new_of_region(flow, host, point) :
			       seen_first(flow, host, point);
	return is_seen_higher(flow, host, point) ? (struct volume){ 0 } :
						   point->seen;
}

void first_sights_leave_out_above(const struct flow *flow,
				  const struct host *host,
				  const struct point *point, struct volume *seen)
{
	struct volume sent = { 0 }, left = { 0 };

	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *other = &flow->points[i];
		bool is_elsewhere = other->netns != point->netns;

		if ((is_elsewhere || !point->egress) &&
		    is_sent_to(host, other, point->netns, point->ifindex))
			volume_add(&sent, &other->seen);
		if (!is_elsewhere && !point->egress && other->egress &&
		    other->ifindex == point->ifindex)
			volume_add(&left, &other->seen);
	}
	sent = volume_less(sent, &left);
	*seen = volume_less(*seen, &sent);
}
