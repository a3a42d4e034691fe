/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "host_state.h"

#include "netns.h"
#include "rtnl.h"
#include "base/io.h"
#include "base/util.h"

/* Values of netns.nsids that are no ids, which are not negative. */
enum { NSID_UNASKED = -1, NSID_NONE = -2 };

int peers_open_query(const struct netns *netns)
{
	return rtnl_open_in(shared_fd_get(netns->ns), 0);
}

typedef int (*nsid_fn)(int query_fd, int ns_fd);

static int32_t ask_nsid(int query_fd, const struct netns *netns, nsid_fn ask)
{
	cleanup_fd int own = netns->name ? -1 : netns_open_own();
	int nsid = ask(query_fd, netns->name ? shared_fd_get(netns->ns) : own);

	return nsid < 0 ? NSID_NONE : nsid;
}

static bool is_there(const struct netns *netns)
{
	return netns->rtnl_fd >= 0 || netns->is_beyond;
}

/* Find a namespace by an id that is known. The id of a namespace that is gone may be reused. */
static uint16_t known_netns(const struct host *host, const struct netns *from,
			    int32_t nsid)
{
	for (uint32_t i = 0; i < from->n_nsids; i++)
		if (from->nsids[i] == nsid && is_there(&host->netns[i]))
			return i;
	return NETNS_NONE;
}

/* Make room for ids of namespaces that were added. */
static bool reserve_nsids(const struct host *host, struct netns *netns)
{
	int32_t *nsids;

	if (netns->n_nsids == host->n_netns)
		return true;
	nsids = reallocarray(netns->nsids, host->n_netns, sizeof(*nsids));
	if (!nsids)
		return false;
	netns->nsids = nsids;
	while (netns->n_nsids < host->n_netns)
		netns->nsids[netns->n_nsids++] = NSID_UNASKED;
	return true;
}

/* Ask for the id that @from has for a namespace that is known only by an id of another one. */
static int32_t ask_nsid_beyond(const struct host *host, const struct netns *from,
			       const struct netns *netns)
{
	const struct netns *via = &host->netns[netns->via];
	cleanup_fd int fd = -1;
	int32_t target;

	if (via == from)
		return netns->via_nsid;
	fd = peers_open_query(via);
	target = fd < 0 ? NSID_NONE : ask_nsid(fd, from, rtnl_assign_nsid);
	if (target >= 0)
		target = rtnl_nsid_in(fd, netns->via_nsid, target);
	return target < 0 ? NSID_NONE : target;
}

/* A namespace gets an id when a link to it is first listed, so ids are requested again for a new one. */
static uint16_t find_netns(const struct host *host, struct netns *from,
			   int32_t nsid)
{
	uint16_t known = known_netns(host, from, nsid);
	bool is_asked = known == NETNS_NONE && reserve_nsids(host, from);
	cleanup_fd int fd = is_asked ? peers_open_query(from) : -1;

	for (uint32_t i = 0; fd >= 0 && i < host->n_netns; i++) {
		const struct netns *netns = &host->netns[i];

		if (!is_there(netns) || from->nsids[i] >= 0)
			continue;
		from->nsids[i] = netns->is_beyond ?
					 ask_nsid_beyond(host, from, netns) :
					 ask_nsid(fd, netns, rtnl_nsid);
		if (from->nsids[i] == nsid)
			return i;
	}
	return known;
}

void peers_resolve(const struct host *host, struct netns *netns,
		   struct netif *netif)
{
	if (netif->is_link_known)
		return;
	netif->is_link_known = true;
	if (netif->link_nsid == NSID_SAME)
		netif->link_netns = netns->index;
	else
		netif->link_netns = find_netns(
			host, netns->is_beyond ? &host->netns[netns->via] : netns,
			netif->link_nsid);
}

/*
 * Links to @netns, to nowhere, and to namespaces that are not followed may lead elsewhere now. Those of
 * interfaces that are gone led where they led.
 */
static void forget_links(const struct host *host, struct netifs *netifs,
			 uint16_t netns)
{
	for (uint32_t i = 0; i < netifs->count; i++) {
		uint16_t link = netifs->items[i].link_netns;

		if (netifs->items[i].gone_ns)
			continue;
		if (link == netns || link >= host->n_netns ||
		    host->netns[link].rtnl_fd < 0)
			netifs->items[i].is_link_known = false;
	}
}

void peers_forget(struct host *host, uint16_t netns, bool is_same)
{
	for (uint32_t i = 0; i < host->n_netns; i++) {
		struct netns *other = &host->netns[i];

		if (netns < other->n_nsids)
			other->nsids[netns] = NSID_UNASKED;
		if (i != netns && !(is_same && other->rtnl_fd < 0))
			forget_links(host, &other->netifs, netns);
	}
	host->netns[netns].n_nsids = 0;
}

void peers_forget_unfollowed(struct host *host)
{
	for (uint32_t i = 0; i < host->n_netns; i++) {
		struct netns *netns = &host->netns[i];

		for (uint32_t other = 0; other < netns->n_nsids; other++)
			if (host->netns[other].rtnl_fd < 0)
				netns->nsids[other] = NSID_UNASKED;
		if (netns->rtnl_fd < 0)
			netns->n_nsids = 0;
		forget_links(host, &netns->netifs, NETNS_NONE);
	}
}

/* ---- Namespaces that are not followed -------------------------------------------------- */

uint32_t peers_inode(const struct host *host, const struct netns *netns,
		     const struct netif *netif)
{
	if (netif->type != LINK_TYPE_PAIR || !netif->link)
		return 0;
	if (netif->link_nsid == NSID_SAME)
		return netns->inode;
	if (netif->is_link_known && netif->link_netns < host->n_netns &&
	    !host->netns[netif->link_netns].is_beyond)
		return host->netns[netif->link_netns].inode;
	return netif->link_inode;
}

static bool is_peer_wanted(const struct host *host, const struct netns *netns,
			   const struct netif *netif)
{
	return netif->type == LINK_TYPE_PAIR && netif->link &&
	       !netif->gone_ns && !peers_inode(host, netns, netif);
}

/* Count up to @max interfaces whose peers are wanted. */
static uint32_t count_wanted(const struct host *host, const struct netns *netns,
			     uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < netns->netifs.count && n < max; i++)
		n += is_peer_wanted(host, netns, &netns->netifs.items[i]);
	return n;
}

uint32_t peers_wanted(const struct host *host, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < host->n_netns && n < max; i++)
		if (host->netns[i].rtnl_fd >= 0)
			n += count_wanted(host, &host->netns[i], max - n);
	return n;
}

static bool learn_peer(const struct host *host, struct netns *netns, int ns_fd,
		       uint32_t inode)
{
	cleanup_fd int query = peers_open_query(netns);
	int nsid = query < 0 ? query : rtnl_nsid(query, ns_fd);
	bool is_any = false;

	for (uint32_t i = 0; nsid >= 0 && i < netns->netifs.count; i++) {
		struct netif *netif = &netns->netifs.items[i];

		if (netif->link_nsid != nsid || netif->gone_ns ||
		    peers_inode(host, netns, netif))
			continue;
		netif->link_inode = inode;
		is_any = true;
	}
	return is_any;
}

bool peers_learn(const struct host *host, int ns_fd, uint32_t inode)
{
	bool is_any = false;

	for (uint32_t i = 0; i < host->n_netns; i++) {
		struct netns *netns = &host->netns[i];

		if (netns->rtnl_fd >= 0 && netns->inode != inode &&
		    count_wanted(host, netns, 1))
			is_any |= learn_peer(host, netns, ns_fd, inode);
	}
	return is_any;
}
