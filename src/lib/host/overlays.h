/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Tunnels that end on this host: packets that pass their devices also pass other interfaces, inside of
 * the tunnel.
 *
 * An overlay is the network of those devices of one domain (topology.h) that have the same type and VNI
 * or GRE key. Its packets have a tag (netif.h) wherever they are known to belong to it: in the tunnel,
 * at the tunnel's device, and at a bridge that has one such device, with all that the bridge joins.
 */
#ifndef NETOBS_HOST_OVERLAYS_H
#define NETOBS_HOST_OVERLAYS_H

#include "netif.h"

struct host;

/* The devices with one VNI or GRE key in one namespace, whose outer packets one namespace sends. */
struct overlay {
	uint16_t domain;
	uint16_t netns; /* of the outer packets */
	uint16_t at;	/* of the devices */
	uint8_t type;	/* enum tunnel_type */
	bool is_any;	/* of all VNIs that have no overlay of their own */
	bool is_routed; /* some device is not a port of a bridge */
	bool is_sent_seen; /* all overlays with these outer packets are observed on the way out */
	bool is_foreign; /* a device of these overlays is in another namespace */
	uint32_t vni;
	uint32_t tag; /* as in struct overlay_tag */
};

struct overlays {
	struct overlay *items; /* sorted by domain, type, is_any, VNI, netns, at */
	uint32_t count;
	uint32_t capacity;
};

/*
 * List all overlays again, once domains are known.
 *
 * @return 0; -ENOMEM: some are missing
 */
int overlays_update(struct host *host);

/*
 * Find the overlay of a packet that was seen in a tunnel; if the namespace of @key sends or
 * receives it, that namespace's. NULL: the tunnel does not end on this host.
 */
const struct overlay *overlays_find(const struct host *host,
				    const struct flow_key *key);

/* Whether some device of a flow's overlay is in @netns, and no port of a bridge. @key: with its tag */
bool overlays_are_routed(const struct host *host, const struct flow_key *key,
			 uint16_t netns);

/* @return the overlay of a tunnel's device; type TUNNEL_NONE: it is no such device */
struct overlay_tag overlays_tag(const struct netif *netif);

#endif
