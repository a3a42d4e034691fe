// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "host_state.h"

#include "base/util.h"

#include <errno.h>

/* The tag of a GRE device with two different keys is equal at both ends and for both directions. */
struct overlay_tag overlays_tag(const struct netif *netif)
{
	const struct link_tunnel *tunnel = &netif->tunnel;

	if (netif->type != LINK_TYPE_TUNNEL || !netif->has_been_up)
		return (struct overlay_tag){ 0 };
	return (struct overlay_tag){
		.type = tunnel->type,
		.vni = tunnel->is_any ? 0 :
					min_u64(tunnel->vni_in, tunnel->vni_out),
	};
}

static bool add_overlay(struct overlays *overlays, const struct overlay *overlay)
{
	if (!array_reserve(&overlays->items, overlays->count,
			   &overlays->capacity, sizeof(*overlays->items), 8))
		return false;
	overlays->items[overlays->count++] = *overlay;
	return true;
}

static bool add_device(struct host *host, const struct netns *netns,
		       const struct netif *netif)
{
	const struct overlay_tag tag = overlays_tag(netif);
	struct overlay overlay = {
		.netns = netif->link_netns,
		.type = tag.type,
		.is_any = netif->tunnel.is_any,
		.at = netns->index,
		.is_foreign = netif->link_netns != netns->index,
		.is_routed = !netif->master,
		.is_sent_seen = netif->observed & 1 << EGRESS,
		.vni = netif->tunnel.is_any ? 0 : netif->tunnel.vni_in,
		.tag = tag.vni,
	};
	bool has_two = !overlay.is_any &&
		       netif->tunnel.vni_out != netif->tunnel.vni_in;

	if (!tag.type)
		return true;
	/* The namespace of the outer packets is not known. */
	if (overlay.netns >= host->n_netns)
		overlay.netns = netns->index;
	overlay.domain = host->netns[overlay.netns].domain;
	if (!add_overlay(&host->overlays, &overlay))
		return false;
	overlay.vni = netif->tunnel.vni_out;
	return !has_two || add_overlay(&host->overlays, &overlay);
}

/* Compare all but the namespace of the devices. */
static int compare_tunnels(const struct overlay *a, const struct overlay *b)
{
	if (a->domain != b->domain)
		return a->domain < b->domain ? -1 : 1;
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	if (a->is_any != b->is_any)
		return a->is_any ? 1 : -1;
	return a->vni < b->vni ? -1 : a->vni > b->vni;
}

static int compare_overlays(const void *left, const void *right)
{
	const struct overlay *a = left, *b = right;
	int order = compare_tunnels(a, b);

	order = order ?: (int)a->netns - (int)b->netns;
	return order ?: (int)a->at - (int)b->at;
}

/* Several devices may have the same overlay. */
static void join_overlays(struct overlays *overlays)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < overlays->count; i++) {
		const struct overlay *overlay = &overlays->items[i];
		struct overlay *last = kept ? &overlays->items[kept - 1] : NULL;

		if (!last || compare_overlays(last, overlay)) {
			overlays->items[kept++] = *overlay;
			continue;
		}
		last->is_routed |= overlay->is_routed;
		last->is_foreign |= overlay->is_foreign;
		last->is_sent_seen &= overlay->is_sent_seen;
		last->tag = min_u64(last->tag, overlay->tag);
	}
	overlays->count = kept;
}

/* The first overlay with the same outer packets tells for all whether these are seen. */
static void sum_up_overlays(struct overlays *overlays)
{
	struct overlay *first = overlays->items;

	for (uint32_t i = 1; i < overlays->count; i++) {
		const struct overlay *overlay = &overlays->items[i];

		if (compare_tunnels(first, overlay) ||
		    first->netns != overlay->netns) {
			first = &overlays->items[i];
			continue;
		}
		first->is_foreign |= overlay->is_foreign;
		first->is_sent_seen &= overlay->is_sent_seen;
	}
}

int overlays_update(struct host *host)
{
	bool is_complete = true;

	host->overlays.count = 0;
	for (uint32_t i = 0; i < host->n_netns; i++) {
		const struct netns *netns = &host->netns[i];

		for (uint32_t k = 0; k < netns->netifs.count; k++)
			is_complete &=
				add_device(host, netns, &netns->netifs.items[k]);
	}
	if (host->overlays.count)
		qsort(host->overlays.items, host->overlays.count,
		      sizeof(*host->overlays.items), compare_overlays);
	join_overlays(&host->overlays);
	sum_up_overlays(&host->overlays);
	return is_complete ? 0 : -ENOMEM;
}

/* @return the index of the first overlay that is not below @wanted */
static uint32_t find_index(const struct overlays *overlays,
			   const struct overlay *wanted)
{
	uint32_t low = 0, high = overlays->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (compare_overlays(&overlays->items[middle], wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* @return the first overlay of equal tunnels that is not below @wanted; NULL: none */
static const struct overlay *find_next(const struct overlays *overlays,
				       const struct overlay *wanted)
{
	uint32_t i = find_index(overlays, wanted);

	return i < overlays->count &&
			       !compare_tunnels(&overlays->items[i], wanted) ?
		       &overlays->items[i] :
		       NULL;
}

/* @return the first overlay of that namespace, or else of any */
static const struct overlay *find_overlay(const struct overlays *overlays,
					  const struct overlay *wanted)
{
	const struct overlay *found = find_next(overlays, wanted);
	struct overlay first = *wanted;

	if (found && found->netns == wanted->netns)
		return found;
	first.netns = 0;
	return find_next(overlays, &first);
}

const struct overlay *overlays_find(const struct host *host,
				    const struct flow_key *key)
{
	struct overlay wanted = {
		.netns = key->netns,
		.type = key->tunnel,
		.vni = key->vni,
	};
	const struct overlay *found;

	if (!host->overlays.count || key->netns >= host->n_netns)
		return NULL;
	wanted.domain = host->netns[key->netns].domain;
	found = find_overlay(&host->overlays, &wanted);
	wanted.is_any = true;
	wanted.vni = 0;
	return found ?: find_overlay(&host->overlays, &wanted);
}

static bool is_routed_at(const struct overlays *overlays,
			 const struct overlay *wanted, uint16_t netns)
{
	for (uint32_t i = find_index(overlays, wanted);
	     i < overlays->count && !compare_tunnels(&overlays->items[i], wanted);
	     i++)
		if (overlays->items[i].at == netns && overlays->items[i].is_routed)
			return true;
	return false;
}

bool overlays_are_routed(const struct host *host, const struct flow_key *key,
			 uint16_t netns)
{
	struct overlay wanted = {
		.domain = key->netns,
		.type = key->tunnel,
		.vni = key->vni,
	};
	struct overlay any = wanted;

	any.is_any = true;
	any.vni = 0;
	return is_routed_at(&host->overlays, &wanted, netns) ||
	       (!key->vni && is_routed_at(&host->overlays, &any, netns));
}
