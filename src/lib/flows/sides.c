/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "observe.h"

#include "sighting.h"

enum { LEVELS = 16 };

static bool is_of_tunnel(const struct host *host, const struct point *point)
{
	const struct netif *netif = point_netif(host, point);

	return netif && netif->type == LINK_TYPE_TUNNEL;
}

static uint8_t sights_of(const struct flow *flow, const struct host *host,
			 const struct point *point)
{
	if (!point_is_beyond(point))
		return point->sights;
	return side_first_sights(flow, host, point).packets ? 1 << SIGHT_FIRST :
							      1 << SIGHT_AGAIN;
}

/*
 * @return whether packets passed @point before they came in through the tunnel's device at
 * side->before
 */
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
	if (side->with == ANY_SIGHT && !side->without)
		return false;
	sights = sights_of(side->flow, side->host, point);
	return !(sights & side->with) || sights & side->without;
}

static uint32_t stack_of(const struct side *side, const struct point *point,
			 uint32_t *ret_level)
{
	const struct netif *netif = point_netif(side->host, point);

	*ret_level = netif ? min_u64(netif->level, LEVELS - 1) : 0;
	return netif ? netif->stack : point->ifindex;
}

/* @return the packets seen at @point that may count there */
static struct volume seen_at(const struct side *side, const struct point *point)
{
	struct volume seen = point->seen;

	if (side->with == ANY_SIGHT)
		return seen;
	if (point_is_beyond(point))
		return side_first_sights(side->flow, side->host, point);
	first_sights_leave_out_above(side->flow, side->host, point, &seen);
	return seen;
}

static struct volume stack_total(const struct side *side, uint32_t stack)
{
	struct volume levels[LEVELS] = { 0 }, total = { 0 };
	uint32_t level;

	for (uint32_t i = 0; i < side->n_points; i++) {
		const struct point *point = &side->points[i];
		struct volume seen;

		if (is_left_out(side, point) ||
		    stack_of(side, point, &level) != stack)
			continue;
		seen = seen_at(side, point);
		volume_combine(&levels[level], &seen, side->are_copies);
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

struct volume side_total(const struct side *side)
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
		volume_combine(&total, &part, side->are_copies);
	}
	return total;
}

static bool comes_in(const struct flow *flow, uint16_t netns)
{
	for (uint32_t i = 0; i < flow->n_points; i++)
		if (flow->points[i].netns == netns && !flow->points[i].egress)
			return true;
	return false;
}

/* Where the flow decides, copies made by a bridge or a mirror look like parallel ways out. */
static bool may_be_copies(const struct flow *flow, const struct host *host,
			  const struct point *point)
{
	return flow_is_group_copy(flow, point->egress) ||
	       (sighting_proves_none(host, flow->is_random) && point->egress &&
		comes_in(flow, point->netns));
}

struct side side_at(const struct flow *flow, const struct host *host, uint32_t i)
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
	       point_is_beside(first, &first[side.n_points]))
		side.n_points++;
	return side;
}

/*
 * @return packets that came in through a tunnel's device and were seen neither in a tunnel on the
 *         way in, nor in another namespace on the way out or first
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
		side.with = ANY_SIGHT;
		side.before = point;
		part = side_total(&side);
		volume_max(&most, &part);
	}
	/* The difference of random samples is due to chance. */
	if (flow->is_random && most.packets)
		return (struct volume){ 0 };
	return volume_less(point->seen, &most);
}

struct volume side_first_sights(const struct flow *flow, const struct host *host,
				const struct point *point)
{
	return !point->egress && is_of_tunnel(host, point) ?
		       find_decapsulated(flow, host, point) :
		       first_sights_find(flow, host, point);
}

/* ---- Packets that an ifb returned --------------------------------------------------- */

struct volume returned_sum(const struct flow *flow, const struct host *host,
			   uint16_t netns)
{
	struct volume sum = { 0 };

	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];
		const struct netif *netif = point_netif(host, point);

		if (point->netns == netns && point->egress && netif &&
		    netif->type == LINK_TYPE_IFB)
			volume_add(&sum, &point->seen);
	}
	return sum;
}

void returned_leave_out(const struct flow *flow, const struct host *host,
			const struct point *point, struct volume *left)
{
	struct volume returned;

	if (!point->egress)
		return;
	returned = returned_sum(flow, host, point->netns);
	/* More came from ifbs than left here: tc redirected them on their way in. */
	if (returned.packets >= left->packets)
		return;
	*left = volume_less(*left, &returned);
	volume_max(left, &returned);
}
