/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Regions: joined namespaces in which nothing is observed, such as the host's between two observed
 * pods. Packets that enter a region at one observed point may leave it at another one. Packets that
 * leave and did not enter come from a process there, or from outside.
 *
 * A mesh is wider: namespaces joined by links that packets may pass unseen, whatever else is
 * observed in them.
 */
#ifndef NETOBS_HOST_REGIONS_H
#define NETOBS_HOST_REGIONS_H

#include "catalogue/direction.h"

#include <stdbool.h>
#include <stdint.h>

struct host;
struct netif;

enum { NESTING_MAX = 8 }; /* of interfaces on one another */

/* Find the regions, after netif.link_netns and netif.observed have changed. */
void regions_update(struct host *host);

/* Whether @netns is in a region with one link, where packets that enter it end. */
bool regions_is_end(const struct host *host, uint16_t netns);

/* Whether @netns is in a region with several links: packets that enter by one may leave by another. */
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
