/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "observe.h"

#include "util.h"
#include "watch.h"

#include <string.h>

enum { POINTS_INLINE = 16, VLAN_NESTING_MAX = 8 };

/* A point and where it is: what is sorted and summed up. */
struct station {
	uint32_t side; /* namespace and direction */
	uint32_t stack;
	uint32_t level;
	const struct volume *seen;
};

static int compare(const void *left, const void *right)
{
	const struct station *a = left, *b = right;

	if (a->side != b->side)
		return a->side < b->side ? -1 : 1;
	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	return a->level < b->level ? -1 : a->level > b->level;
}

static void locate(const struct flow *flow, const struct watch *watch,
		   struct station *stations)
{
	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct point *point = &flow->points[i];
		const struct netif *netif =
			watch_find(watch, point->place, point->ifindex);

		stations[i] = (struct station){
			.side = (uint32_t)point->place << 1 | point->egress,
			.stack = netif ? netif->stack : point->ifindex,
			.level = netif ? netif->level : 0,
			.seen = &point->seen,
		};
	}
}

static bool is_group_copy(const struct flow *flow, uint32_t side)
{
	bool is_ipv6 = flow->key.flags & KEY_IPV6;
	const __u8 *dst = flow->key.dst.bytes;

	if (!(side & 1))
		return false;
	if (flow->has_mac && flow->dst_mac[0] & 1)
		return true;
	return is_ipv6 ? dst[0] == 0xff : dst[12] >= 224;
}

static void combine(struct volume *sum, const struct volume *part, bool is_copy)
{
	if (is_copy)
		volume_max(sum, part);
	else
		volume_add(sum, part);
}

/* One side: from *@i on, all stations of it. */
static struct volume side_total(const struct flow *flow,
				const struct station *stations, uint32_t *i)
{
	uint32_t side = stations[*i].side;
	bool is_copy = is_group_copy(flow, side);
	struct volume total = { 0 };

	while (*i < flow->n_points && stations[*i].side == side) {
		uint32_t stack = stations[*i].stack;
		struct volume largest = { 0 };

		while (*i < flow->n_points && stations[*i].side == side &&
		       stations[*i].stack == stack) {
			uint32_t level = stations[*i].level;
			struct volume sum = { 0 };

			for (; *i < flow->n_points && stations[*i].side == side &&
			       stations[*i].stack == stack &&
			       stations[*i].level == level;
			     (*i)++)
				combine(&sum, stations[*i].seen, is_copy);
			volume_max(&largest, &sum);
		}
		combine(&total, &largest, is_copy);
	}
	return total;
}

bool observe_total(const struct flow *flow, const struct watch *watch,
		   struct volume *ret_total)
{
	struct station room[POINTS_INLINE], *stations = room;
	cleanup_free struct station *more = NULL;
	struct volume total = { 0 };
	uint32_t i = 0;

	if (flow->n_points == 1) {
		*ret_total = flow->points[0].seen;
		return true;
	}
	if (flow->n_points > POINTS_INLINE) {
		more = reallocarray(NULL, flow->n_points, sizeof(*more));
		if (!more)
			return false;
		stations = more;
	}
	locate(flow, watch, stations);
	qsort(stations, flow->n_points, sizeof(*stations), compare);
	while (i < flow->n_points) {
		struct volume side = side_total(flow, stations, &i);

		volume_max(&total, &side);
	}
	*ret_total = total;
	return true;
}

/* A VLAN device takes the tag off; below it, it is the outermost one. */
static void add_vlan(struct flow_key *key, uint16_t vlan_id)
{
	uint16_t tag = vlan_id | VLAN_PRESENT;

	if (!key->vlan)
		key->vlan = tag;
	else
		key->outer_vlan = tag;
}

void observe_key(const struct flow_key *key, const struct watch *watch,
		 struct flow_key *ret_key)
{
	const struct netif *netif = watch_find(watch, key->netns, key->ifindex);

	*ret_key = *key;
	ret_key->ifindex = 0;
	ret_key->netns = 0;
	ret_key->flags &= ~KEY_EGRESS;
	for (int i = 0; netif && i < VLAN_NESTING_MAX; i++) {
		if (netif->is_vlan)
			add_vlan(ret_key, netif->vlan_id);
		netif = netif->lower ?
				watch_find(watch, key->netns, netif->lower) :
				NULL;
	}
}
