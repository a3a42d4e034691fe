/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Finds the namespace, followed or beyond, of the other end of a link. A link message names the
 * namespace by an id that the interface's own namespace has for it (IFLA_LINK_NETNSID); the ids of
 * observed namespaces are requested (RTM_GETNSID) when an unknown id appears.
 */
#ifndef NETOBS_HOST_PEERS_H
#define NETOBS_HOST_PEERS_H

#include "host_state.h"

#include <stdbool.h>
#include <stdint.h>

/* Open a socket in a followed namespace, to ask for ids and links. @return it, or -errno */
int peers_open_query(const struct netns *netns);

/* Set @netif->link_netns, unless it is known. */
void peers_resolve(const struct host *host, struct netns *netns,
		   struct netif *netif);

/*
 * The namespace of @netns is followed, and may be another one than before. If it is the same, links
 * from namespaces that are not followed any more, and cannot be asked, still lead there.
 */
void peers_forget(struct host *host, uint16_t netns, bool is_same);

/* Namespaces that are not followed may be other ones than before. */
void peers_forget_unfollowed(struct host *host);

/*
 * Pairs also lead to namespaces that are not followed, such as those of containers. Their inodes
 * become known when peers_learn() gets a descriptor.
 */

/** @return the inode of the namespace of a pair's other end; 0: unknown */
uint32_t peers_inode(const struct host *host, const struct netns *netns,
		     const struct netif *netif);

/** @return the number of pairs whose peers_inode() is unknown, up to @max */
uint32_t peers_wanted(const struct host *host, uint32_t max);

/** Set netif.link_inode of all pairs that lead to the namespace of @ns_fd. @return whether any do */
bool peers_learn(const struct host *host, int ns_fd, uint32_t inode);

/*
 * The namespaces beyond the followed ones: those that links lead to, directly or by further links,
 * such as the host's of two observed pods. Nothing is observed there, but packets pass them from
 * one observed interface to another, so the topology has to know their interfaces.
 *
 * A followed namespace has ids for them (IFLA_LINK_NETNSID), and the kernel lists the interfaces of
 * a namespace by its id (IFLA_TARGET_NETNSID, Linux 4.20). So they need no name, no process, and no
 * descriptor, which would keep them alive. They send no notifications: they are listed again when a
 * link leads to an interface that is not known there, and some of them, in turn, at each drain.
 */

/* List the namespaces that new links lead to. */
void beyond_explore(struct host *host);

/* List some of these namespaces again. @return whether anything has changed: host_settle() is due */
bool beyond_refresh(struct host *host);

/* Remove all of them, because ids may mean other namespaces now. They are found again. */
void beyond_forget(struct host *host);

#endif
