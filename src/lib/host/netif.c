/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "netif.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/util.h"
#include "netns.h"
#include "rtnl.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_arp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS_MAX = 8 }; /* the kernel's MAX_NEST_DEV */

void netifs_done(struct netifs *netifs)
{
	for (uint32_t i = 0; i < netifs->count; i++)
		free(netifs->items[i].altnames);
	free(netifs->items);
	*netifs = (struct netifs){ 0 };
}

uint32_t sorted_index(const void *items, uint32_t n, size_t size, uint32_t key)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t middle = (low + high) / 2, found;

		memcpy(&found, (const char *)items + middle * size,
		       sizeof(found));
		if (found < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t netifs_index(const struct netifs *netifs, uint32_t ifindex)
{
	return sorted_index(netifs->items, netifs->count,
			    sizeof(*netifs->items), ifindex);
}

struct netif *netifs_search(struct netifs *netifs, uint32_t ifindex)
{
	uint32_t i = netifs_index(netifs, ifindex);

	if (i == netifs->count || netifs->items[i].ifindex != ifindex)
		return NULL;
	netifs->hints[ifindex % NETIF_HINTS] = i;
	return &netifs->items[i];
}

struct netif *netifs_ensure(struct netifs *netifs, uint32_t ifindex)
{
	struct netif *found = netifs_find(netifs, ifindex);
	uint32_t i;

	if (found)
		return found;
	if (!array_reserve(&netifs->items, netifs->count, &netifs->capacity,
			   sizeof(*netifs->items), 4))
		return NULL;
	i = netifs_index(netifs, ifindex);
	memmove(&netifs->items[i + 1], &netifs->items[i],
		(netifs->count - i) * sizeof(*netifs->items));
	netifs->count++;
	netifs->items[i] = (struct netif){
		.ifindex = ifindex,
		.link_nsid = NSID_SAME,
		.link_netns = NETNS_NONE,
	};
	return &netifs->items[i];
}

/* Note the former master: entries counted under it are read later. */
static void note_former(struct netif *netif, const struct rtnl_link *link)
{
	if (!netif->master || netif->master == link->master)
		return;
	netif->former_master = netif->master;
	netif->former_ns = clock_boot_ns();
}

bool netif_is_called(const struct netif *netif, const char *name)
{
	const char *alt = netif->altnames;

	if (!strcmp(netif->name, name))
		return true;
	while (alt && *alt && strcmp(alt, name))
		alt += strlen(alt) + 1;
	return alt && *alt;
}

/* An end of a pair loses its peer only when it is removed, which the kernel reports next. Its last packets came from the peer. */
static bool loses_peer(const struct netif *netif, const struct rtnl_link *link)
{
	return netif->type == LINK_TYPE_PAIR && link->type == LINK_TYPE_PAIR &&
	       netif->link && !link->link && !netif->gone_ns;
}

static void update_link(struct netif *netif, const struct rtnl_link *link)
{
	if (netif->link != link->link || netif->link_nsid != link->link_nsid ||
	    netif->gone_ns) {
		netif->is_link_known = false;
		netif->link_inode = 0;
	}
	netif->link = link->link;
	netif->link_nsid = link->link_nsid;
}

void netif_update(struct netif *netif, const struct rtnl_link *link)
{
	note_former(netif, link);
	if (!loses_peer(netif, link))
		update_link(netif, link);
	netif->gone_ns = 0;
	netif->master = link->master;
	netif->type = link->type;
	netif->hardware = link->hardware;
	netif->vlan_id = link->vlan_id;
	netif->tunnel = link->tunnel;
	netif->has_been_up |= link->is_up;
	memcpy(netif->name, link->name, sizeof(netif->name));
	free(netif->altnames);
	netif->altnames = rtnl_copy_altnames(link->altnames);
}

/* @return whether there was a former master to remove */
static bool forget_former(struct netif *netif, int64_t before_ns)
{
	if (!netif->former_master || netif->former_ns >= before_ns)
		return false;
	netif->former_master = 0;
	return true;
}

bool netifs_sweep(struct netifs *netifs, int64_t before_ns)
{
	uint32_t kept = 0;
	bool changed = false;

	for (uint32_t i = 0; i < netifs->count; i++) {
		int64_t gone_ns = netifs->items[i].gone_ns;

		if (gone_ns && gone_ns < before_ns) {
			free(netifs->items[i].altnames);
			continue;
		}
		changed |= forget_former(&netifs->items[i], before_ns);
		netifs->items[kept++] = netifs->items[i];
	}
	changed |= kept < netifs->count;
	netifs->count = kept;
	return changed;
}

int netif_link_kind(const struct netif *netif)
{
	switch (netif->hardware) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
		return LINK_ETHERNET;
	case ARPHRD_NONE: /* tun, WireGuard */
	case ARPHRD_PPP:
	case ARPHRD_RAWIP:
	case ARPHRD_TUNNEL: /* ipip */
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
	case ARPHRD_IP6GRE:
		return LINK_NONE;
	default:
		return -EOPNOTSUPP;
	}
}

uint32_t netif_lower(const struct netif *netif)
{
	return netif_has_lower(netif) && netif->link_nsid == NSID_SAME ?
		       netif->link :
		       0;
}

/* While a stack is built, `stack` leads to its smallest ifindex. */
static struct netif *root_of(struct netifs *netifs, struct netif *netif)
{
	while (netif->stack != netif->ifindex) {
		struct netif *next = netifs_find(netifs, netif->stack);

		netif->stack = next->stack;
		netif = next;
	}
	return netif;
}

static void join_netifs(struct netifs *netifs, struct netif *a, struct netif *b)
{
	a = root_of(netifs, a);
	b = root_of(netifs, b);
	if (a->ifindex < b->ifindex)
		b->stack = a->ifindex;
	else
		a->stack = b->ifindex;
}

/* Put @upper on @lower. @return whether that raised its level */
static bool stack_on(struct netifs *netifs, struct netif *upper,
		     struct netif *lower)
{
	if (!upper || !lower)
		return false;
	join_netifs(netifs, upper, lower);
	if (upper->level > lower->level || lower->level >= LEVELS_MAX)
		return false;
	upper->level = lower->level + 1;
	return true;
}

/* ifindex 0 is no interface, and is not found. */
static bool restack_one(struct netifs *netifs, struct netif *netif)
{
	bool raised = false;

	raised |= stack_on(netifs, netifs_find(netifs, netif->master), netif);
	raised |= stack_on(netifs, netifs_find(netifs, netif->former_master),
			   netif);
	raised |=
		stack_on(netifs, netif, netifs_find(netifs, netif_lower(netif)));
	return raised;
}

static bool restack_once(struct netifs *netifs)
{
	bool raised = false;

	for (uint32_t i = 0; i < netifs->count; i++)
		raised |= restack_one(netifs, &netifs->items[i]);
	return raised;
}

void netifs_restack(struct netifs *netifs)
{
	for (uint32_t i = 0; i < netifs->count; i++) {
		netifs->items[i].stack = netifs->items[i].ifindex;
		netifs->items[i].level = 0;
	}
	while (restack_once(netifs))
		;
	for (uint32_t i = 0; i < netifs->count; i++)
		netifs->items[i].stack =
			root_of(netifs, &netifs->items[i])->ifindex;
}

/* ---- Addresses ----------------------------------------------------------------------- */

/* @return false: it is of another family */
static bool take_address(const struct sockaddr *from, uint8_t ret_address[16])
{
	if (from && from->sa_family == AF_INET) {
		memset(ret_address, 0, 10);
		memset(ret_address + 10, 0xff, 2);
		memcpy(ret_address + 12,
		       &((const struct sockaddr_in *)from)->sin_addr, 4);
		return true;
	}
	if (!from || from->sa_family != AF_INET6)
		return false;
	memcpy(ret_address, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
	return true;
}

static int take_interfaces(struct addresses *addresses,
			   const struct ifaddrs *first)
{
	uint8_t(*list)[16];
	uint32_t n = 0;

	for (const struct ifaddrs *one = first; one; one = one->ifa_next)
		n++;
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	n = 0;
	for (const struct ifaddrs *one = first; one; one = one->ifa_next)
		n += take_address(one->ifa_addr, list[n]);
	free(addresses->list);
	*addresses = (struct addresses){ list, n };
	return 0;
}

static int read_here(struct addresses *addresses)
{
	struct ifaddrs *first;
	int err;

	if (getifaddrs(&first))
		return -errno;
	err = take_interfaces(addresses, first);
	freeifaddrs(first);
	return err;
}

int addresses_read(struct addresses *addresses, int ns_fd)
{
	int back, err;

	if (ns_fd < 0)
		return read_here(addresses);
	err = netns_enter(ns_fd, &back);
	if (err)
		return err;
	err = read_here(addresses);
	netns_leave(back);
	return err;
}

void addresses_done(struct addresses *addresses)
{
	free(addresses->list);
	*addresses = (struct addresses){ 0 };
}

bool addresses_have(const struct addresses *addresses, const uint8_t address[16])
{
	const uint8_t loopback = 127;

	if (ip_is_v4(address) && address[12] == loopback)
		return true;
	for (uint32_t i = 0; i < addresses->n; i++)
		if (!memcmp(addresses->list[i], address, 16))
			return true;
	return false;
}
