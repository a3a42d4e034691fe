/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "peers.h"

#include "base/clock.h"
#include "base/util.h"
#include "host_state.h"
#include "rtnl.h"

#include <errno.h>

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
