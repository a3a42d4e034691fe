/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "topology.h"

#include "base/clock.h"
#include "base/util.h"
#include "host_state.h"
#include "rtnl.h"

#include <stdlib.h>

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

/* ---- Beyond -------------------------------------------------------------------------- */

enum {
	BEYOND_MAX = 4096,
	REFRESH_MAX = 32, /* in one call; each takes some 100 us */
	LINKS_MAX = 8192, /* of a namespace, whose owner may create any number */
};

static const int64_t refresh_ns = 2 * NSEC_PER_SEC;

/* ---- One namespace ---------------------------------------------------------------- */

struct listing {
	struct netns *netns;
	uint32_t n;
	bool is_changed;
};

static void on_link(void *ctx, const struct nlmsghdr *message)
{
	struct listing *listing = ctx;
	struct rtnl_link link;
	struct netif *netif;

	if (!rtnl_parse_link(message, &link) || link.deleted ||
	    listing->n++ >= LINKS_MAX)
		return;
	netif = netifs_ensure(&listing->netns->netifs, link.ifindex);
	if (!netif)
		return;
	listing->is_changed |= netif->gone_ns || !netif->listing ||
			       netif->link != link.link ||
			       netif->link_nsid != link.link_nsid ||
			       netif->master != link.master;
	netif->listing = listing->netns->listings;
	netif_update(netif, &link);
}

/* @return whether the list differs from the one before */
static bool list_links(const struct host *host, struct netns *netns)
{
	cleanup_fd int fd = peers_open_query(&host->netns[netns->via]);
	struct listing listing = { .netns = netns };
	int err;

	netns->listings++;
	netns->listed_ns = clock_boot_ns();
	err = fd < 0 ? fd :
		       rtnl_dump_links_of(fd, netns->via_nsid, on_link, &listing);
	if (err)
		log_debug(host->log, "links of namespace %d: %s",
			  netns->via_nsid, strerror(-err));
	netns->is_large = listing.n > LINKS_MAX;
	for (uint32_t i = 0; i < netns->netifs.count; i++) {
		struct netif *netif = &netns->netifs.items[i];

		if (netif->gone_ns || netif->listing == netns->listings)
			continue;
		netif->gone_ns = netns->listed_ns;
		listing.is_changed = true;
	}
	return listing.is_changed;
}

/* Add the namespace that @from has the id @nsid for. @return its index; NETNS_NONE: no memory */
static uint16_t add_beyond(struct host *host, uint16_t from, int32_t nsid)
{
	struct netns *netns;

	if (from >= host->n_netns || host->n_beyond == BEYOND_MAX)
		return NETNS_NONE;
	netns = host_add_netns(host);
	if (!netns)
		return NETNS_NONE;
	host->n_beyond++;
	netns->is_beyond = netns->is_retired = true;
	netns->inode = 0;
	netns->via = from;
	netns->via_nsid = nsid;
	list_links(host, netns);
	return netns->index;
}

/* ---- All of them -------------------------------------------------------------------- */

static bool leads_beyond(const struct netif *netif)
{
	return netif_is_linked(netif) && netif->link_nsid != NSID_SAME &&
	       !netif->gone_ns;
}

/* List a namespace again if its interface is newer than the list. @return whether there are more now */
static bool list_missing(const struct host *host, const struct netif *netif)
{
	struct netns *netns = &host->netns[netif->link_netns];

	return netns->is_beyond && !netifs_find(&netns->netifs, netif->link) &&
	       list_links(host, netns);
}

/* @return whether a namespace that has been explored is to be explored again */
static bool explore_netns(struct host *host, uint16_t index)
{
	bool is_again = false;
	/* Pointers to namespaces become invalid, those to interfaces do not. */
	struct netifs netifs = host->netns[index].netifs;

	for (uint32_t i = 0; i < netifs.count; i++) {
		struct netif *netif = &netifs.items[i];
		struct netns *netns = &host->netns[index];

		if (netif->is_link_known || !leads_beyond(netif))
			continue;
		peers_resolve(host, netns, netif);
		if (netif->link_netns == NETNS_NONE)
			netif->link_netns = add_beyond(
				host, netns->is_beyond ? netns->via : index,
				netif->link_nsid);
		else
			is_again |= list_missing(host, netif);
	}
	return is_again;
}

void beyond_explore(struct host *host)
{
	bool is_again = host->looks_beyond;

	/* Newly found namespaces are explored in turn. */
	while (is_again) {
		is_again = false;
		for (uint32_t i = 0; i < host->n_netns; i++)
			if (host->netns[i].rtnl_fd >= 0 ||
			    host->netns[i].is_beyond)
				is_again |= explore_netns(host, i);
	}
}

bool beyond_refresh(struct host *host)
{
	const int64_t before_ns = clock_boot_ns() - refresh_ns;
	uint32_t n = host->n_beyond ? host->n_netns : 0, listed = 0;
	bool is_changed = false;

	for (uint32_t i = 0; i < n && listed < REFRESH_MAX; i++) {
		struct netns *netns;

		host->refreshed = (host->refreshed + 1U) % n;
		netns = &host->netns[host->refreshed];
		if (!netns->is_beyond || netns->is_large ||
		    netns->listed_ns > before_ns)
			continue;
		is_changed |= list_links(host, netns);
		listed++;
	}
	return is_changed;
}

void beyond_forget(struct host *host)
{
	if (!host->n_beyond)
		return;
	for (uint32_t i = 0; i < host->n_netns; i++) {
		struct netns *netns = &host->netns[i];

		if (!netns->is_beyond)
			continue;
		netns->is_beyond = false;
		netifs_done(&netns->netifs);
	}
	host->n_beyond = 0;
	peers_forget_unfollowed(host);
}

/* ---- State --------------------------------------------------------------------------- */

/* Programs know a namespace by 16 bits. */
enum { NETNS_MAX = 1 << 15 };

struct netns *host_find_followed(const struct host *host, uint32_t inode,
				 const struct netns *but)
{
	for (uint32_t i = 0; i < host->n_netns; i++) {
		struct netns *netns = &host->netns[i];

		if (netns != but && netns->inode == inode && netns->rtnl_fd >= 0)
			return netns;
	}
	return NULL;
}

/* @return a namespace whose last flows have been reported; NULL: none */
static struct netns *find_unused(const struct host *host)
{
	for (uint32_t i = 0; i < host->n_netns; i++)
		if (host->netns[i].is_retired && !host->netns[i].is_beyond &&
		    !host->netns[i].netifs.count)
			return &host->netns[i];
	return NULL;
}

struct netns *host_add_netns(struct host *host)
{
	struct netns *netns = find_unused(host);

	if (netns) {
		netns->is_retired = netns->is_alias = false;
		return netns;
	}
	return host_append_netns(host);
}

struct netns *host_append_netns(struct host *host)
{
	struct netns *netns;

	if (host->n_netns == NETNS_MAX)
		return NULL;
	netns = reallocarray(host->netns, host->n_netns + 1, sizeof(*netns));
	if (!netns)
		return NULL;
	host->netns = netns;
	netns[host->n_netns] =
		(struct netns){ .index = host->n_netns, .rtnl_fd = -1 };
	return &netns[host->n_netns++];
}
