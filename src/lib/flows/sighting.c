/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "sighting.h"

#include "host/host.h"
#include "host/topology.h"

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

void sighting_key(const struct flow_key *key, const struct host *host,
		  struct flow_key *ret_key)
{
	make_common(key, host, host_find(host, key->netns, key->ifindex),
		    ret_key);
}

bool sighting_proves_none(const struct host *host, bool is_random)
{
	return host->is_filtered && is_random;
}

void sighting_read(const struct flow_entry *entry, const struct host *host,
		   bool is_random, struct sighting *ret_sighting)
{
	const struct flow_key *key = &entry->key;
	const struct netif *netif = host_find(host, key->netns, key->ifindex);
	enum sight sight = topology_sight(entry, netif);
	bool is_arrival = !(key->flags & KEY_EGRESS) && sight == SIGHT_FIRST;
	bool is_unclear = host->is_shifting ||
			  (!is_arrival && sighting_proves_none(host, is_random));

	make_common(key, host, netif, &ret_sighting->key);
	if (key->tunnel && ret_sighting->key.flags & FLOW_KEY_OVERLAY)
		sight = topology_sight_in_tunnel(host, key, sight);
	ret_sighting->is_random = is_random;
	ret_sighting->is_counted = false;
	ret_sighting->sight = is_unclear ? SIGHT_EITHER : sight;
}

bool sights_are_further(uint8_t sights)
{
	return !(sights & ~SIGHTS_FURTHER);
}

bool sighting_counts(bool is_random, enum sight sight)
{
	return !is_random || !(SIGHTS_FURTHER & 1 << sight);
}
