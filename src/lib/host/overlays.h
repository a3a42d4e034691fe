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

#include "host_state.h"

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

/*
 * @return whether some device of a flow's overlay is in @netns, and no port of a bridge. @key: with
 * its tag
 */
bool overlays_are_routed(const struct host *host, const struct flow_key *key,
			 uint16_t netns);

/* @return the overlay of a tunnel's device; type TUNNEL_NONE: it is no such device */
struct overlay_tag overlays_tag(const struct netif *netif);

#endif
