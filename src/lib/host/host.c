// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "host.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "netns.h"
#include "host_state.h"
#include "rtnl.h"
#include "topology.h"

#include <errno.h>
#include <linux/if_link.h>
#include <string.h>
#include <sys/socket.h>

void host_init(struct host *host, const struct log *log)
{
	*host = (struct host){ .log = log };
}

static void netns_done(struct netns *netns)
{
	close_fd(&netns->rtnl_fd);
	shared_fd_unref(netns->ns);
	netifs_done(&netns->netifs);
	free(netns->nsids);
	free(netns->name);
}

void host_done(struct host *host)
{
	for (uint32_t i = 0; i < host->n_netns; i++)
		netns_done(&host->netns[i]);
	free(host->netns);
	free(host->overlays.items);
	*host = (struct host){ 0 };
}

/* ---- Reporting -------------------------------------------------------------- */

void host_subscribe(struct host *host, struct host_listener *listener)
{
	listener->next = host->listeners;
	host->listeners = listener;
}

static void report_netif(struct host *host, struct netns *netns,
			 struct netif *netif, enum host_event event)
{
	for (struct host_listener *l = host->listeners; l; l = l->next)
		l->on_netif(l->ctx, netns, netif, event);
}

int host_settle(struct host *host)
{
	int err;

	beyond_explore(host);
	err = topology_update(host);
	for (struct host_listener *l = host->listeners; l; l = l->next)
		if (l->on_settled)
			l->on_settled(l->ctx);
	return err;
}

static void lose_netif(struct host *host, struct netns *netns, struct netif *netif)
{
	netif->gone_ns = clock_boot_ns();
	report_netif(host, netns, netif, HOST_GONE);
}

/* ---- Interfaces of a namespace -------------------------------------------------- */

struct update {
	struct host *host;
	struct netns *netns;
};

static void on_link(void *ctx, const struct nlmsghdr *message)
{
	const struct update *update = ctx;
	struct host *host = update->host;
	struct rtnl_link link;
	struct netif *netif;
	bool came;

	if (!rtnl_parse_link(message, &link))
		return;
	if (link.deleted) {
		netif = netifs_find(&update->netns->netifs, link.ifindex);
		if (netif && !netif->gone_ns)
			lose_netif(host, update->netns, netif);
		return;
	}
	netif = netifs_ensure(&update->netns->netifs, link.ifindex);
	if (!netif) {
		log_error(host->log, "%s: not observed: no memory", link.name);
		return;
	}
	came = netif->gone_ns || !netif->listing;
	netif->listing = update->netns->listings;
	netif_update(netif, &link);
	report_netif(host, update->netns, netif, came ? HOST_CAME : HOST_CHANGED);
}

static int request_links(const struct netns *netns)
{
	struct ifinfomsg header = { .ifi_family = AF_UNSPEC };

	return rtnl_request_dump(netns->rtnl_fd, RTM_GETLINK, &header,
				 sizeof(header));
}

static int start_listing(struct netns *netns)
{
	int err = request_links(netns);

	if (err)
		return err;
	netns->listings++;
	netns->is_listing = true;
	netns->is_overrun = false;
	return 0;
}

/* Interfaces that the list does not contain are gone. */
static int end_listing(struct host *host, struct netns *netns)
{
	netns->is_listing = false;
	for (uint32_t i = 0; i < netns->netifs.count; i++) {
		struct netif *netif = &netns->netifs.items[i];

		if (!netif->gone_ns && netif->listing != netns->listings)
			lose_netif(host, netns, netif);
		else if (!netif->gone_ns && netns->listings > 1)
			report_netif(host, netns, netif, HOST_UNSURE);
	}
	return netns->is_overrun ? start_listing(netns) : 0;
}

static int note_overrun(const struct host *host, struct netns *netns)
{
	log_debug(host->log, "netlink overrun, listing interfaces again");
	netns->is_overrun = true;
	return netns->is_listing ? 0 : start_listing(netns);
}

static int receive_messages(struct host *host, struct netns *netns, bool wait)
{
	struct update update = { host, netns };
	int ret = rtnl_receive(netns->rtnl_fd, wait, on_link, &update);

	if (ret == -ENOBUFS)
		return note_overrun(host, netns);
	if (ret > 0 && netns->is_listing)
		return end_listing(host, netns);
	return ret < 0 ? ret : 0;
}

int host_update(struct host *host, struct netns *netns)
{
	int err;

	if (netns->rtnl_fd < 0)
		return 0;
	err = receive_messages(host, netns, false);
	host_settle(host);
	return err;
}

/* ---- Namespaces ------------------------------------------------------------------- */

static bool has_name(const struct netns *netns, const char *name)
{
	if (netns->is_retired)
		return false;
	return name && netns->name ? !strcmp(netns->name, name) :
				     !name && !netns->name;
}

/*
 * Find the former entry of a namespace: it keeps its index, which is in the entries of its packets
 * and in the state of an earlier process. NULL: there is none.
 */
static struct netns *find_former(const struct host *host, const char *name)
{
	uint32_t inode;

	if (netns_find(name, &inode))
		return NULL;
	for (uint32_t i = 0; i < host->n_netns; i++)
		if (host->netns[i].is_retired && host->netns[i].inode == inode)
			return &host->netns[i];
	return NULL;
}

int host_ensure_netns(struct host *host, const char *name, uint16_t *ret_index)
{
	cleanup_free char *copy = NULL;
	struct netns *netns;

	for (uint32_t i = 0; i < host->n_netns; i++) {
		if (has_name(&host->netns[i], name)) {
			*ret_index = i;
			return 0;
		}
	}
	if (copy_optional(name, &copy))
		return -ENOMEM;
	netns = find_former(host, name) ?: host_add_netns(host);
	if (!netns)
		return -ENOMEM;
	netns->is_retired = netns->is_alias = false;
	netns->name = TAKE_PTR(copy);
	*ret_index = netns->index;
	return 0;
}

int host_restore_netns(struct host *host, const char *name, uint32_t inode,
		       bool is_followed)
{
	cleanup_free char *copy = NULL;
	struct netns *netns;

	if (copy_optional(is_followed ? name : NULL, &copy))
		return -ENOMEM;
	netns = host_append_netns(host);
	if (!netns)
		return -ENOMEM;
	netns->inode = inode;
	netns->name = TAKE_PTR(copy);
	netns->is_retired = !is_followed;
	return 0;
}

struct netif *host_restore_netif(struct host *host, uint16_t netns,
				 uint32_t ifindex)
{
	struct netif *netif = netifs_ensure(&host->netns[netns].netifs, ifindex);

	if (netif) {
		netif->listing = 1; /* it was listed before */
		netif->gone_ns = clock_boot_ns();
	}
	return netif;
}

static int open_rtnl(struct netns *netns)
{
	netns->rtnl_fd = rtnl_open_in(shared_fd_get(netns->ns), RTMGRP_LINK);
	return netns->rtnl_fd < 0 ? netns->rtnl_fd : 0;
}

static int open_ns(struct netns *netns)
{
	cleanup_fd int own = -1;
	int fd;

	if (!netns->name) {
		own = netns_open_own();
		return own < 0 ? own : netns_inode(own, &netns->inode);
	}
	fd = netns_open(netns->name);
	if (fd < 0)
		return fd;
	netns->ns = shared_fd_new(fd);
	return netns->ns ? netns_inode(fd, &netns->inode) : -ENOMEM;
}

/* Find the namespace and ask for its interfaces. */
static int open_netns(struct host *host, struct netns *netns)
{
	uint32_t former = netns->inode;
	int err = open_ns(netns);

	beyond_forget(host);
	peers_forget(host, netns->index, netns->inode == former);
	err = err ?: open_rtnl(netns);
	err = err ?: start_listing(netns);
	if (!err)
		return 0;
	close_fd(&netns->rtnl_fd);
	shared_fd_unref(TAKE_PTR(netns->ns));
	return err;
}

/* Report the interfaces as gone, and close all descriptors that keep the namespace alive. */
static void close_netns(struct host *host, struct netns *netns)
{
	beyond_forget(host);
	for (uint32_t i = 0; i < netns->netifs.count; i++)
		if (!netns->netifs.items[i].gone_ns)
			lose_netif(host, netns, &netns->netifs.items[i]);
	close_fd(&netns->rtnl_fd);
	shared_fd_unref(TAKE_PTR(netns->ns));
	netns->is_listing = false;
	netns->is_polled = false;
}

static void log_open_error(const struct host *host, const struct netns *netns,
			   int err)
{
	if (netns->name)
		log_error(host->log, "interfaces: netns:%s: %s%s", netns->name,
			  strerror(-err),
			  err == -EPERM ? ": entering another network namespace "
					  "needs CAP_SYS_ADMIN" :
					  "");
}

int host_open(struct host *host, uint16_t index, uint16_t *ret_index)
{
	struct netns *netns = &host->netns[index];
	const struct netns *same;
	int err;

	*ret_index = index;
	if (netns->rtnl_fd >= 0)
		return 0;
	err = open_netns(host, netns);
	if (err) {
		log_open_error(host, netns, err);
		return err;
	}
	same = host_find_followed(host, netns->inode, netns);
	if (same) {
		*ret_index = same->index;
		host_retire(host, index);
		return 0;
	}
	while (!err && netns->is_listing)
		err = receive_messages(host, netns, true);
	return err;
}

void host_retire(struct host *host, uint16_t index)
{
	struct netns *netns = &host->netns[index];

	close_netns(host, netns);
	netns->is_retired = true;
	free(TAKE_PTR(netns->name));
}

/* ---- Namespaces that come and go -------------------------------------------------- */

bool host_has_names(const struct host *host)
{
	for (uint32_t i = 0; i < host->n_netns; i++)
		if (host->netns[i].name)
			return true;
	return false;
}

/*
 * Flows of the namespace that is gone are still to be reported, so the new one with that name gets
 * another index.
 */
static struct netns *replace_netns(struct host *host, struct netns *old)
{
	uint32_t index = old->index;
	struct netns *netns;

	if (!old->netifs.count)
		return old;
	netns = host_add_netns(host);
	if (!netns)
		return NULL;
	old = &host->netns[index]; /* it may have moved */
	netns->name = TAKE_PTR(old->name);
	old->is_retired = true;
	return netns;
}

/*
 * A process id may belong to another process by now. Names of ip-netns(8) and other paths
 * keep their meaning.
 */
static bool may_return(const struct netns *netns)
{
	return strncmp(netns->name, "/proc/", strlen("/proc/")) != 0;
}

/* @return whether its name means another namespace now, or none */
static bool release_if_gone(struct host *host, struct netns *netns)
{
	uint32_t inode;

	if (!netns_find(netns->name, &inode) && inode == netns->inode)
		return false;
	log_info(host->log, "netns:%s: the namespace is gone", netns->name);
	close_netns(host, netns);
	return true;
}

static void log_alias(const struct host *host, const struct netns *netns,
		      const struct netns *same)
{
	log_warning(host->log,
		    "netns:%s: not observed: it is the namespace %s%s, which already is",
		    netns->name, same->name ? "netns:" : "that netobs runs in",
		    same->name ?: "");
}

/* @return whether the namespace is followed again */
static bool follow_again(struct host *host, struct netns *netns)
{
	const struct netns *same;
	uint32_t inode;

	if (!may_return(netns) || netns_find(netns->name, &inode))
		return false;
	same = host_find_followed(host, inode, netns);
	if (same && !netns->is_alias)
		log_alias(host, netns, same);
	netns->is_alias = same;
	if (same)
		return false;
	netns = replace_netns(host, netns);
	if (!netns || open_netns(host, netns))
		return false;
	log_info(host->log, "netns:%s: observing it again", netns->name);
	return true;
}

void host_check_names(struct host *host)
{
	uint32_t n = host->n_netns;
	bool changed = false;

	/* Release first, since another name may mean the same namespace now. */
	for (uint32_t i = 0; i < n; i++)
		if (host->netns[i].name && host->netns[i].rtnl_fd >= 0)
			changed |= release_if_gone(host, &host->netns[i]);
	for (uint32_t i = 0; i < n; i++)
		if (host->netns[i].name && host->netns[i].rtnl_fd < 0)
			changed |= follow_again(host, &host->netns[i]);
	if (changed)
		host_settle(host);
}

/* ---- Lookups ------------------------------------------------------------------------ */

struct netif *host_next_netif(const struct host *host, struct netns **netns,
			      const struct netif *netif)
{
	uint32_t i = netif ? (*netns)->index : 0;
	uint32_t k = netif ? (uint32_t)(netif - (*netns)->netifs.items) + 1 : 0;

	for (; i < host->n_netns; i++, k = 0) {
		*netns = &host->netns[i];
		if (k < (*netns)->netifs.count && !(*netns)->is_beyond)
			return &(*netns)->netifs.items[k];
	}
	return NULL;
}

void host_sweep(struct host *host, int64_t before_ns)
{
	bool changed = beyond_refresh(host);

	for (uint32_t i = 0; i < host->n_netns; i++)
		changed |= netifs_sweep(&host->netns[i].netifs, before_ns);
	if (changed)
		host_settle(host);
}
