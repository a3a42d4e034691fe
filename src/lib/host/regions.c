/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "topology.h"

#include "host_state.h"

typedef void (*visit_fn)(const struct host *host, struct netns *netns,
			 struct netif *netif);

static void visit_all(const struct host *host, visit_fn visit)
{
	for (uint32_t i = 0; i < host->n_netns; i++) {
		struct netns *netns = &host->netns[i];

		for (uint32_t k = 0; k < netns->netifs.count; k++)
			if (!netns->netifs.items[k].gone_ns)
				visit(host, netns, &netns->netifs.items[k]);
	}
}

static bool is_dark(const struct host *host, uint16_t netns)
{
	return host->netns[netns].region != NETNS_NONE;
}

static uint16_t region_root(const struct host *host, uint16_t netns)
{
	while (host->netns[netns].region != netns)
		netns = host->netns[netns].region;
	return netns;
}

static uint16_t mesh_root(const struct host *host, uint16_t netns)
{
	while (host->netns[netns].mesh != netns)
		netns = host->netns[netns].mesh;
	return netns;
}

static void mark_observed(const struct host *host, struct netns *netns,
			  struct netif *netif)
{
	(void)host;
	if (netif->observed && netif->type != LINK_TYPE_LOOPBACK)
		netns->region = NETNS_NONE;
}

/* @return the other namespace that the interface is linked to; NETNS_NONE: none */
static uint16_t linked_netns(const struct host *host, const struct netns *netns,
			     const struct netif *netif)
{
	return netif_is_linked(netif) && netif->link_netns < host->n_netns &&
			       netif->link_netns != netns->index ?
		       netif->link_netns :
		       NETNS_NONE;
}

static bool is_observed(const struct netif *netif, enum direction direction)
{
	return netif && netif->observed & 1 << direction;
}

/* @return whether packets may pass the link in some direction without being seen at its ends */
static bool is_unseen(const struct host *host, const struct netif *netif)
{
	const struct netif *peer =
		netif->type == LINK_TYPE_PAIR ?
			host_find(host, netif->link_netns, netif->link) :
			NULL;

	return !(is_observed(netif, EGRESS) || is_observed(peer, INGRESS)) ||
	       !(is_observed(netif, INGRESS) || is_observed(peer, EGRESS));
}

static void join(const struct host *host, struct netns *netns, struct netif *netif)
{
	uint16_t linked = linked_netns(host, netns, netif), a, b;

	if (linked == NETNS_NONE)
		return;
	if (is_unseen(host, netif)) {
		a = mesh_root(host, netns->index);
		b = mesh_root(host, linked);
		host->netns[a > b ? a : b].mesh = a > b ? b : a;
	}
	if (netns->region == NETNS_NONE || !is_dark(host, linked))
		return;
	a = region_root(host, netns->index);
	b = region_root(host, linked);
	host->netns[a > b ? a : b].region = a > b ? b : a;
}

/* A pair is a link of both its ends, but an upper interface is no link of its lower one. */
static void count_links(const struct host *host, struct netns *netns,
			struct netif *netif)
{
	uint16_t linked = linked_netns(host, netns, netif), other;
	uint16_t region = is_dark(host, netns->index) ? netns->region :
							netns->index;

	if (netif->type == LINK_TYPE_BRIDGE)
		host->netns[region].floods = true;
	if (linked == NETNS_NONE)
		return;
	other = host->netns[linked].region;
	if (netns->region == other)
		return;
	if (netns->region != NETNS_NONE)
		host->netns[netns->region].n_links++;
	else if (netif->type != LINK_TYPE_PAIR)
		host->netns[other].n_links++;
}

void regions_update(struct host *host)
{
	for (uint32_t i = 0; i < host->n_netns; i++) {
		host->netns[i].region = i;
		host->netns[i].mesh = i;
		host->netns[i].n_links = 0;
		host->netns[i].floods = false;
	}
	visit_all(host, mark_observed);
	visit_all(host, join);
	for (uint32_t i = 0; i < host->n_netns; i++) {
		host->netns[i].mesh = mesh_root(host, i);
		if (is_dark(host, i))
			host->netns[i].region = region_root(host, i);
	}
	visit_all(host, count_links);
}

bool regions_is_end(const struct host *host, uint16_t netns)
{
	return is_dark(host, netns) &&
	       host->netns[host->netns[netns].region].n_links <= 1;
}

bool regions_is_passage(const struct host *host, uint16_t netns)
{
	return is_dark(host, netns) && !regions_is_end(host, netns);
}

uint16_t regions_next(const struct host *host, uint16_t netns,
		      const struct netif *netif, enum direction direction)
{
	for (int i = 0; netif && i < NESTING_MAX; i++) {
		netns = netif->link_netns;
		if (!netif_is_linked(netif) || netns >= host->n_netns)
			return NETNS_NONE;
		if (is_dark(host, netns))
			return host->netns[netns].region;
		if (!netif_has_lower(netif))
			return netns;
		netif = host_find(host, netns, netif->link);
		if (is_observed(netif, direction))
			return NETNS_NONE;
	}
	return NETNS_NONE;
}
