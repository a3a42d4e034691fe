/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * How the interfaces of all observed namespaces are joined, and so where a packet
 * is seen for the first time.
 *
 * An observation point is an interface and a direction. A packet comes to it
 *
 * - on the way in, from outside, or from another point of this host: the peer of a
 *   veth, the lower interface of a VLAN device, a port of a bridge;
 * - on the way out, from this host's own processes, from an upper interface, or
 *   from an interface that it came in through. In the last case, the programs know
 *   for each packet whether it was counted there (KEY_AGAIN, bpf/track/packet.h), also
 *   for packets that tc sent on at an interface, and for those that an ifb returns to
 *   where tc redirected them, which pass that point again.
 *
 * A packet that leaves by a tunnel's device is on its way out again inside of another packet, and comes in
 * that way before it comes in through such a device (host_state.h).
 *
 * If all points that may come before a point are observed, the packet was seen
 * already; if none is, this is the first sight. If some are, or if more than one way
 * leads to the point, observe.h decides for each flow.
 *
 * Namespaces that no interface of ours is in are known as far as links lead (peers.c). A copy that
 * a bridge sends by each of several ports was seen when it came in; if it came in unseen, the flow
 * decides as well.
 *
 * Namespaces are joined where a veth pair, a VLAN or a macvlan device connects them, or a tunnel's
 * device has its outer packets in another one (IFLA_LINK, IFLA_LINK_NETNSID); others may use the same addresses for something
 * else. Joined ones form a domain.
 */
#ifndef NETOBS_HOST_TOPOLOGY_H
#define NETOBS_HOST_TOPOLOGY_H

#include "bpf/types.h"
#include "catalogue/direction.h"
#include "netif.h"

#include <stdbool.h>
#include <stdint.h>

struct host;

/* Marks a flow of a namespace's loopback interface, which joins no other namespace. */
enum { DOMAIN_LOOPBACK = 0x8000 };

/*
 * Examine all interfaces again, restack them, and find the origins, for the programs.
 *
 * @return 0; -ENOMEM: nothing has changed
 */
int topology_update(struct host *host);

/*
 * @return whether copies leave by several interfaces: the destination is a group. @dst_mac: NULL:
 * unknown
 */
static inline bool topology_is_to_group(const struct flow_key *key,
					const uint8_t *dst_mac)
{
	if (dst_mac && dst_mac[0] & 1)
		return true;
	return key->flags & KEY_IPV6 ? key->dst.bytes[0] == 0xff :
				       key->dst.bytes[12] >= 224;
}

/* The sight that a program's entry proves; @netif: its interface, or NULL. */
enum sight topology_sight(const struct flow_entry *entry,
			  const struct netif *netif);

/*
 * The sight of a packet in a tunnel that ends on this host, and starts here if the packet is on its way
 * out. The kernel forgets there where a packet came in.
 *
 * @sight  what topology_sight() says of the packet
 */
enum sight topology_sight_in_tunnel(const struct host *host,
				    const struct flow_key *key, enum sight sight);

/*
 * @return whether @netns may send through @lower, unseen, packets that were seen coming in or on
 * their way there
 */
bool topology_forwards_unseen(const struct host *host, uint16_t netns,
			      const struct netif *lower);

/* @return whether interfaces of other namespaces, such as macvlans, send through this one */
bool topology_has_foreign_uppers(const struct netif *netif);

/* The interface that @netif->link names; NULL: its namespace is not known. */
const struct netif *topology_linked(const struct host *host,
				    const struct netif *netif);

/*
 * Regions: joined namespaces in which nothing is observed, such as the host's between two observed
 * pods. Packets that enter a region at one observed point may leave it at another one. Packets that
 * leave and did not enter come from a process there, or from outside.
 *
 * A mesh is wider: namespaces joined by links that packets may pass unseen, whatever else is
 * observed in them.
 */

enum { NESTING_MAX = 8 }; /* of interfaces on one another */

/* Find the regions, after netif.link_netns and netif.observed have changed. */
void regions_update(struct host *host);

/* @return whether @netns is in a region with one link, where packets that enter it end */
bool regions_is_end(const struct host *host, uint16_t netns);

/*
 * @return whether @netns is in a region with several links: packets that enter by one may leave by
 * another
 */
bool regions_is_passage(const struct host *host, uint16_t netns);

/*
 * The namespace that packets enter next when they leave by an interface of @netns, or have passed
 * before they came in by it, without another observed point in between.
 *
 * @return its index, or netns.region if it is in one; NETNS_NONE: there is none
 */
uint16_t regions_next(const struct host *host, uint16_t netns,
		      const struct netif *netif, enum direction direction);

#endif
