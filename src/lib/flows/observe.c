/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "observe.h"

#include "base/util.h"
#include "host/host.h"
#include "host/regions.h"
#include "host/topology.h"

#include <string.h>

enum { LEVELS = 16 };

/* ---- Totals ------------------------------------------------------------------- */

static const uint8_t any_sight = UINT8_MAX;

/* The points of one namespace and direction, which are looked at together. */
struct side {
	const struct flow *flow;
	const struct host *host;
	const struct point *points;
	uint32_t n_points;
	uint8_t with;	 /* points of any of these sights, 1 << enum sight */
	uint8_t without; /* and of none of these */
	const struct point *before; /* likewise points that may come before this one; NULL: all */
	bool are_copies;
};

static bool is_group_copy(const struct flow *flow, bool is_egress)
{
	return is_egress &&
	       topology_is_to_group(&flow->key,
				    flow->has_mac ? flow->macs : NULL);
}

static void combine_volumes(struct volume *sum, const struct volume *part,
			    bool is_copy)
{
	if (is_copy)
		volume_max(sum, part);
	else
		volume_add(sum, part);
}

static const struct netif *netif_of(const struct host *host,
				    const struct point *point)
{
	return host_find(host, point->netns, point->ifindex);
}

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

/* On its way out of an interface above that one. */
static bool is_sent_to(const struct host *host, const struct point *point,
		       uint16_t netns, uint32_t ifindex)
{
	const struct netif *netif = point->egress ? netif_of(host, point) : NULL;

	return netif && netif->link_netns == netns && netif->link == ifindex &&
	       netif_has_lower(netif);
}

/* Seen in the namespace of the peer or one joined to it, or on its way into that. */
static bool is_seen_at_peer(const struct flow *flow, const struct host *host,
			    const struct point *point, uint16_t peers_netns)
{
	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *other = &flow->points[i];
		const struct netif *netif =
			other->egress ? netif_of(host, other) : NULL;

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

/* It came in at @point, and may have left through @lower by an unobserved macvlan. */
static bool is_forwarded_to(const struct host *host, const struct point *point,
			    const struct netif *lower)
{
	return !point->egress &&
	       topology_forwards_unseen(host, point->netns, lower) &&
	       !is_above(host, netif_of(host, point), lower);
}

/* What passed an ifb of @netns, from which it went back to where tc had redirected it. */
static struct volume sum_returned(const struct flow *flow,
				  const struct host *host, uint16_t netns)
{
	struct volume sum = { 0 };

	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];
		const struct netif *netif = netif_of(host, point);

		if (point->netns == netns && point->egress && netif &&
		    netif->type == LINK_TYPE_IFB)
			volume_add(&sum, &point->seen);
	}
	return sum;
}

/* Of what left @point's namespace, count once what came back there from an ifb. */
static void leave_out_returned(const struct flow *flow, const struct host *host,
			       const struct point *point, struct volume *left)
{
	struct volume returned;

	if (!point->egress)
		return;
	returned = sum_returned(flow, host, point->netns);
	*left = volume_less(*left, &returned);
	volume_max(left, &returned);
}

/*
 * Of what came in through @lower, the part that came from outside. Macvlans send to one
 * another through their lower interface, on its way in, and to others through it on
 * its way out: so what they sent, and did not leave through it, came in again.
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
		if (is_sent_to(host, point, netns, lower->ifindex)) {
			part = point->seen;
			leave_out_returned(flow, host, point, &part);
			volume_add(&sent, &part);
		}
		if (point->egress && point->netns == netns &&
		    point->ifindex == lower->ifindex)
			volume_add(&left, &point->seen);
	}
	sent = volume_less(sent, &left);
	*in = volume_less(*in, &sent);
}

/* On its way out of an upper interface. */
static bool is_seen_higher(const struct flow *flow, const struct host *host,
			   const struct point *point)
{
	const struct netif *netif = netif_of(host, point);

	for (uint32_t i = 0; netif && i < flow->n_points; i++) {
		const struct point *other = &flow->points[i];
		const struct netif *upper = netif_of(host, other);
		bool is_higher = other->egress && other->netns == point->netns &&
				 upper && upper->stack == netif->stack &&
				 upper->level > netif->level;

		if (is_higher ||
		    is_sent_to(host, other, point->netns, point->ifindex))
			return true;
	}
	return false;
}

/* Of what a point on the way in saw, the part that no other point saw before. */
static struct volume seen_first(const struct flow *flow, const struct host *host,
				const struct point *point)
{
	const struct netif *netif = netif_of(host, point);
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

static bool is_beyond(const struct point *point)
{
	return point->sights == 1 << SIGHT_BEYOND;
}

static uint16_t region_of(const struct host *host, const struct point *point)
{
	return regions_next(host, point->netns, netif_of(host, point),
			    point->egress ? EGRESS : INGRESS);
}

/* What came in at @netns, and did not leave it by an observed interface. */
static struct volume left_unseen(const struct flow *flow, uint16_t netns)
{
	struct volume in = { 0 }, out = { 0 };

	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];

		if (point->netns != netns)
			continue;
		if (!point->egress)
			volume_add(&in, &point->seen);
		else if (point->sights & 1 << SIGHT_FORWARDED)
			volume_add(&out, &point->seen);
	}
	return volume_less(in, &out);
}

/* What went into the region. Points are sorted by direction, then namespace. */
static struct volume sum_entered(const struct flow *flow,
				 const struct host *host, uint16_t region)
{
	struct volume sum = { 0 }, part;

	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];
		bool is_next = i && point[-1].netns == point->netns &&
			       point[-1].egress == point->egress;

		if (point->egress &&
		    is_joined(host, region_of(host, point), region)) {
			combine_volumes(&sum, &point->seen,
					is_group_copy(flow, true));
		} else if (!point->egress && !is_next &&
			   is_joined(host, point->netns, region)) {
			part = left_unseen(flow, point->netns);
			volume_add(&sum, &part);
		}
	}
	return sum;
}

/* What came out of it; of a bridge's copies, each interface may have one: the largest counts. */
static struct volume sum_left(const struct flow *flow, const struct host *host,
			      uint16_t region)
{
	struct volume sum = { 0 }, part;

	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];

		if (point->egress || !is_beyond(point) ||
		    region_of(host, point) != region)
			continue;
		part = seen_first(flow, host, point);
		combine_volumes(&sum, &part, host->netns[region].floods);
	}
	return sum;
}

/*
 * What came out of the region and had not entered it at an observed point, of all points at the
 * first of them: a process in it has sent that.
 */
static struct volume new_of_region(const struct flow *flow,
				   const struct host *host,
				   const struct point *point)
{
	uint16_t region = region_of(host, point);
	struct volume entered;

	for (const struct point *other = flow->points; other < point; other++)
		if (!other->egress && is_beyond(other) &&
		    region_of(host, other) == region)
			return (struct volume){ 0 };
	entered = sum_entered(flow, host, region);
	return volume_less(sum_left(flow, host, region), &entered);
}

static struct volume find_decapsulated(const struct flow *flow,
				       const struct host *host,
				       const struct point *point);

static bool is_of_tunnel(const struct host *host, const struct point *point)
{
	const struct netif *netif = netif_of(host, point);

	return netif && netif->type == LINK_TYPE_TUNNEL;
}

/* Of a point of SIGHT_BEYOND, the part of what it saw that was seen there first. */
static struct volume find_beyond(const struct flow *flow, const struct host *host,
				 const struct point *point)
{
	if (!point->egress && is_of_tunnel(host, point))
		return find_decapsulated(flow, host, point);
	if (!point->egress)
		return region_of(host, point) != NETNS_NONE ?
			       new_of_region(flow, host, point) :
			       seen_first(flow, host, point);
	return is_seen_higher(flow, host, point) ? (struct volume){ 0 } :
						   point->seen;
}

static uint8_t sights_of(const struct flow *flow, const struct host *host,
			 const struct point *point)
{
	if (!is_beyond(point))
		return point->sights;
	return find_beyond(flow, host, point).packets ? 1 << SIGHT_FIRST :
							1 << SIGHT_AGAIN;
}

/* Whether packets passed @point before they came in through the tunnel's device at side->before. */
static bool may_precede(const struct side *side, const struct point *point)
{
	if (point == side->before)
		return false;
	if (point->is_in_tunnel && !point->egress)
		return true;
	if (point->netns == side->before->netns)
		return false;
	return point->egress ||
	       (!is_of_tunnel(side->host, point) &&
		sights_of(side->flow, side->host, point) & 1 << SIGHT_FIRST);
}

static bool is_left_out(const struct side *side, const struct point *point)
{
	uint8_t sights;

	if (side->before && !may_precede(side, point))
		return true;
	if (side->with == any_sight && !side->without)
		return false;
	sights = sights_of(side->flow, side->host, point);
	return !(sights & side->with) || sights & side->without;
}

static uint32_t stack_of(const struct side *side, const struct point *point,
			 uint32_t *ret_level)
{
	const struct netif *netif = netif_of(side->host, point);

	*ret_level = netif ? min_u64(netif->level, LEVELS - 1) : 0;
	return netif ? netif->stack : point->ifindex;
}

static struct volume stack_total(const struct side *side, uint32_t stack)
{
	struct volume levels[LEVELS] = { 0 }, total = { 0 };
	uint32_t level;

	for (uint32_t i = 0; i < side->n_points; i++) {
		const struct point *point = &side->points[i];

		if (!is_left_out(side, point) &&
		    stack_of(side, point, &level) == stack)
			combine_volumes(&levels[level], &point->seen,
					side->are_copies);
	}
	for (level = 0; level < LEVELS; level++) {
		if (side->points->egress && levels[level].packets)
			total = levels[level];
		else
			volume_max(&total, &levels[level]);
	}
	return total;
}

static bool is_first_of_stack(const struct side *side, uint32_t i, uint32_t stack)
{
	uint32_t level;

	for (uint32_t k = 0; k < i; k++)
		if (!is_left_out(side, &side->points[k]) &&
		    stack_of(side, &side->points[k], &level) == stack)
			return false;
	return true;
}

static struct volume side_total(const struct side *side)
{
	struct volume total = { 0 };

	for (uint32_t i = 0; i < side->n_points; i++) {
		const struct point *point = &side->points[i];
		uint32_t level, stack = stack_of(side, point, &level);
		struct volume part;

		if (is_left_out(side, point) ||
		    !is_first_of_stack(side, i, stack))
			continue;
		part = stack_total(side, stack);
		combine_volumes(&total, &part, side->are_copies);
	}
	return total;
}

static bool is_beside(const struct point *a, const struct point *b)
{
	return a->netns == b->netns && a->egress == b->egress;
}

static bool comes_in(const struct flow *flow, uint16_t netns)
{
	for (uint32_t i = 0; i < flow->n_points; i++)
		if (flow->points[i].netns == netns && !flow->points[i].egress)
			return true;
	return false;
}

/*
 * Of random samples only first sights count, but a filter may reject a packet there and accept
 * it at a later point. So no entry proves a sight: the flow decides between all.
 */
static bool proves_no_sight(const struct host *host, bool is_random)
{
	return host->is_filtered && is_random;
}

/* Where the flow decides, copies made by a bridge or a mirror look like parallel ways out. */
static bool may_be_copies(const struct flow *flow, const struct host *host,
			  const struct point *point)
{
	return is_group_copy(flow, point->egress) ||
	       (proves_no_sight(host, flow->is_random) && point->egress &&
		comes_in(flow, point->netns));
}

/* What begins with point @i; points are sorted by direction, then namespace. */
static struct side side_at(const struct flow *flow, const struct host *host,
			   uint32_t i)
{
	const struct point *first = &flow->points[i];
	struct side side = {
		.flow = flow,
		.host = host,
		.points = first,
		.n_points = 1,
		.are_copies = may_be_copies(flow, host, first),
	};

	while (i + side.n_points < flow->n_points &&
	       is_beside(first, &first[side.n_points]))
		side.n_points++;
	return side;
}

/*
 * Of what came in through a tunnel's device, the part that was seen neither in a tunnel on the way in nor
 * in another namespace, on the way out or first.
 */
static struct volume find_decapsulated(const struct flow *flow,
				       const struct host *host,
				       const struct point *point)
{
	struct volume most = { 0 };

	for (uint32_t i = 0; i < flow->n_points;) {
		struct side side = side_at(flow, host, i);
		struct volume part;

		i += side.n_points;
		side.with = any_sight;
		side.before = point;
		part = side_total(&side);
		volume_max(&most, &part);
	}
	/* Of random samples, the difference is by chance. */
	if (flow->is_random && most.packets)
		return (struct volume){ 0 };
	return volume_less(point->seen, &most);
}

/* The points of @netns on the way in. */
static struct volume sum_arrived(const struct flow *flow,
				 const struct host *host, uint16_t netns)
{
	struct volume total = { 0 };

	for (uint32_t i = 0; i < flow->n_points;) {
		struct side side = side_at(flow, host, i);

		i += side.n_points;
		if (side.points->netns != netns || side.points->egress)
			continue;
		side.with = any_sight;
		total = side_total(&side);
	}
	return total;
}

/*
 * What left @netns before, of what tc sends to its other interfaces: the kernel notes where tc did
 * that as the interface that it came in through. So it does with what an ifb sends on.
 */
static struct volume sum_sent_on(const struct flow *flow,
				 const struct host *host, uint16_t netns)
{
	struct volume sum = sum_returned(flow, host, netns);

	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];

		if (point->netns == netns && point->egress &&
		    point->sights & 1 << SIGHT_FIRST)
			volume_add(&sum, &point->seen);
	}
	return sum;
}

/*
 * Of what leaves a namespace and came in there, the part that did not come in as this flow,
 * because address translation made it this one. With a filter, also the part that did not
 * match when it came in: as many as one interface sent, because several may send copies.
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

/* The largest of all sides, where nothing says how they follow each other. */
static struct volume find_largest(const struct flow *flow,
				  const struct host *host, uint8_t sights)
{
	struct volume total = { 0 };

	for (uint32_t i = 0; i < flow->n_points;) {
		struct side side = side_at(flow, host, i);
		struct volume part;

		side.with = sights;
		side.are_copies |= side.points->egress &&
				   host->netns[side.points->netns].copies_unseen;
		part = side_total(&side);
		leave_out_returned(flow, host, side.points, &part);
		volume_max(&total, &part);
		i += side.n_points;
	}
	return total;
}

/* These are further sights, wherever the first was. */
static const uint8_t again = 1 << SIGHT_AGAIN | 1 << SIGHT_FORWARDED;

bool observe_are_further(uint8_t sights)
{
	return !(sights & ~again);
}

bool observe_counts(bool is_random, enum sight sight)
{
	return !is_random || !(again & 1 << sight);
}

/*
 * All that the flow's only point saw counts. A packet that comes back there from an ifb does not:
 * it is a further sight, and the first was here.
 */
static bool is_first_alone(const struct flow *flow, const struct host *host)
{
	uint8_t sights = flow->points[0].sights;

	if (!(sights & again))
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

		if (!is_beyond(point)) {
			all_sights |= point->sights;
			continue;
		}
		part = find_beyond(flow, host, point);
		volume_add(&total, &part);
		all_sights |= 1 << (part.packets ? SIGHT_FIRST : SIGHT_AGAIN);
	}
	if (all_sights & 1 << SIGHT_FORWARDED && !flow->is_random) {
		part = sum_changed(flow, host);
		volume_add(&total, &part);
	}
	if (all_sights & ~(1 << SIGHT_FIRST | again)) {
		part = find_largest(flow, host, ~again);
		volume_max(&total, &part);
	}
	/* Seen nowhere first: a packet passes a point once. */
	for (uint32_t i = 0;
	     !total.packets && !flow->is_random && i < flow->n_points; i++) {
		part = flow->points[i].seen;
		leave_out_returned(flow, host, &flow->points[i], &part);
		volume_max(&most, &part);
	}
	*ret_total = total.packets ? total : most;
}

/* Whether the overlay of @inside is entered and left in @netns: by routes, not by a bridge. */
static bool is_entered_at(const struct flow *inside, const struct host *host,
			  uint16_t netns)
{
	if (overlays_are_routed(host, &inside->key, netns))
		return true;
	for (uint32_t i = 0; i < inside->n_points; i++) {
		const struct netif *netif = netif_of(host, &inside->points[i]);

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
		const struct netif *netif = netif_of(host, point);

		if (is_entered_at(inside, host, point->netns) ||
		    (netif && netif->type == LINK_TYPE_PAIR &&
		     is_entered_at(inside, host, netif->link_netns)))
			return true;
	}
	return false;
}

/* ---- Keys --------------------------------------------------------------------- */

/* A VLAN device takes the tag off; below it, it is the outermost one. */
static void add_vlan(struct flow_key *key, uint16_t vlan_id)
{
	uint16_t tag = vlan_id | VLAN_PRESENT;

	if (!(key->vlan & VLAN_PRESENT) && !key->tunnel)
		key->vlan = tag;
	else
		key->outer_vlan = tag;
}

static void add_vlans(struct flow_key *key, const struct host *host,
		      const struct netif *netif)
{
	for (int i = 0; netif && i < NESTING_MAX; i++) {
		if (netif->type == LINK_TYPE_VLAN)
			add_vlan(key, netif->vlan_id);
		else if (!netif_has_lower(netif))
			return;
		netif = topology_linked(host, netif);
	}
}

static void set_overlay(struct flow_key *key, uint8_t type, uint32_t vni)
{
	key->flags |= FLOW_KEY_OVERLAY;
	key->tunnel = type;
	key->vni = vni;
	key->outer_hash = 0;
}

static void make_common(const struct flow_key *key, const struct host *host,
			const struct netif *netif, struct flow_key *ret_key)
{
	const struct overlay *overlay;

	*ret_key = *key;
	ret_key->ifindex = 0;
	ret_key->flags &= ~(KEY_EGRESS | KEY_AGAIN);
	if (netif && netif->type == LINK_TYPE_LOOPBACK)
		ret_key->netns |= DOMAIN_LOOPBACK;
	else if (key->netns < host->n_netns)
		ret_key->netns = host->netns[key->netns].domain;
	add_vlans(ret_key, host, netif);
	overlay = key->tunnel ? overlays_find(host, key) : NULL;
	if (overlay)
		set_overlay(ret_key, overlay->type, overlay->tag);
	else if (!key->tunnel && netif && netif->overlay.type)
		set_overlay(ret_key, netif->overlay.type, netif->overlay.vni);
}

void observe_key(const struct flow_key *key, const struct host *host,
		 struct flow_key *ret_key)
{
	make_common(key, host, host_find(host, key->netns, key->ifindex),
		    ret_key);
}

void observe_entry(const struct flow_entry *entry, const struct host *host,
		   bool is_random, struct sighting *ret_sighting)
{
	const struct flow_key *key = &entry->key;
	const struct netif *netif = host_find(host, key->netns, key->ifindex);
	enum sight sight = topology_sight(entry, netif);
	bool is_arrival = !(key->flags & KEY_EGRESS) && sight == SIGHT_FIRST;
	bool is_unclear = host->is_shifting ||
			  (!is_arrival && proves_no_sight(host, is_random));

	make_common(key, host, netif, &ret_sighting->key);
	if (key->tunnel && ret_sighting->key.flags & FLOW_KEY_OVERLAY)
		sight = topology_sight_in_tunnel(host, key, sight);
	ret_sighting->is_random = is_random;
	ret_sighting->is_counted = false;
	ret_sighting->sight = is_unclear ? SIGHT_EITHER : sight;
}
