/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The followed namespaces with their interfaces: what the files of this room share. host.h is for others. */
#ifndef NETOBS_HOST_HOST_STATE_H
#define NETOBS_HOST_HOST_STATE_H

#include "base/log.h"
#include "netif.h"

#include <stdbool.h>
#include <stdint.h>

/* One network namespace. */
struct netns {
	uint16_t index; /* in host.netns; flow_key.netns */
	char *name; /* as given; NULL: the namespace where the context was started */
	struct shared_fd *ns; /* NULL: the caller's, or gone */
	uint32_t inode;
	int rtnl_fd;	 /* -1: the namespace is not followed */
	bool is_retired; /* kept for its last flows; another netns may follow it */
	bool is_alias; /* not followed: another entry follows the namespace of that name */
	bool is_polled;	 /* set by the owner: it waits for rtnl_fd */
	bool is_listing; /* a dump of all interfaces is under way */
	bool is_overrun; /* messages were lost: another dump has to follow */
	uint32_t listings;
	struct netifs netifs;

	/* For regions.c: nothing is observed here, and it is listed by an id. */
	bool is_beyond; /* is_retired is set, too: it has no name, and no descriptor */
	uint16_t via; /* the followed namespace whose id for it is via_nsid */
	int32_t via_nsid;
	int64_t listed_ns;
	bool is_large; /* it is not listed again */

	/* See topology.h. */
	uint16_t domain;	   /* the lowest namespace of its domain */
	bool has_unclear_arrivals; /* packets that may or may not be counted come in */
	bool sees_all_arrivals; /* no interface brings in packets unseen */
	bool sees_all_departures; /* no interface sends packets unseen, except loopbacks and ifbs */
	bool forwards_unseen; /* see topology_forwards_unseen() */
	bool copies_unseen; /* several copies of a packet may leave that was not seen coming in */
	uint32_t n_arrivals; /* interfaces observed on the way in */

	/* See topology.h. */
	uint16_t region; /* the lowest namespace of its region; NETNS_NONE: this one is observed */
	uint16_t mesh; /* the lowest namespace of its mesh */
	uint32_t n_links; /* of the region, in its lowest namespace: links to other namespaces */
	bool floods; /* of the region, or of an observed namespace: a bridge may copy packets */

	int32_t *nsids; /* ids that this namespace has for others, by their index; see peers.c */
	uint32_t n_nsids;
};

/* The devices with one VNI or GRE key in one namespace, whose outer packets one namespace sends. */
struct overlay {
	uint16_t domain;
	uint16_t netns; /* of the outer packets */
	uint16_t at;	/* of the devices */
	uint8_t type;	/* enum tunnel_type */
	bool is_any;	/* of all VNIs that have no overlay of their own */
	bool is_routed; /* some device is not a port of a bridge */
	bool is_sent_seen; /* all overlays with these outer packets are observed on the way out */
	bool is_foreign; /* a device of these overlays is in another namespace */
	uint32_t vni;
	uint32_t tag; /* as in struct overlay_tag */
};

struct overlays {
	struct overlay *items; /* sorted by domain, type, is_any, VNI, netns, at */
	uint32_t count;
	uint32_t capacity;
};

struct host_listener;

struct host {
	const struct log *log;
	struct netns *netns;
	uint32_t n_netns;
	struct host_listener *listeners;
	bool forwards_unseen; /* some namespace does */
	bool looks_beyond; /* namespaces that are not followed are listed, see peers.c */
	uint32_t n_beyond;  /* number of these namespaces */
	uint16_t refreshed; /* the namespace that beyond_refresh() listed last */
	struct overlays overlays;
	/*
	 * Interfaces begin or end to be observed while packets pass them. Until programs are
	 * on or off, and all earlier entries have been read, an entry may be from before or
	 * after the change. Meanwhile the flow decides (SIGHT_EITHER).
	 */
	bool is_shifting;
	/*
	 * A filter may reject a packet at its first points and accept it at a later one. So packets
	 * of a flow that leave a namespace and did not come in count there.
	 */
	bool is_filtered;
};

/* @return whether packets of one namespace may reach the other one with the same tuple */
static inline bool host_joins(const struct host *host, uint16_t a, uint16_t b)
{
	return host && a < host->n_netns && b < host->n_netns &&
	       host->netns[a].domain == host->netns[b].domain;
}

/* @return NULL: the interface is not known */
static inline struct netif *host_find(const struct host *host, uint16_t netns,
				      uint32_t ifindex)
{
	return netns < host->n_netns ?
		       netifs_find(&host->netns[netns].netifs, ifindex) :
		       NULL;
}

/* @return the entry, other than @but, that follows the namespace with that inode; NULL: there is none */
struct netns *host_find_followed(const struct host *host, uint32_t inode,
				 const struct netns *but);

/* Add a namespace without a name, not open yet, with the next index. NULL: no memory. */
struct netns *host_append_netns(struct host *host);

/* Like host_append_netns(), but may reuse the index of one whose last flows have been reported. */
struct netns *host_add_netns(struct host *host);

/*
 * Tunnels that end on this host: packets that pass their devices also pass other interfaces, inside of
 * the tunnel.
 *
 * An overlay is the network of those devices of one domain (topology.h) that have the same type and VNI
 * or GRE key. Its packets have a tag (netif.h) wherever they are known to belong to it: in the tunnel,
 * at the tunnel's device, and at a bridge that has one such device, with all that the bridge joins.
 */

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

/* ---- Peers ------------------------------------------------------------------------------- */

/*
 * Finds the namespace, followed or beyond, of the other end of a link. A link message names the
 * namespace by an id that the interface's own namespace has for it (IFLA_LINK_NETNSID); the ids of
 * observed namespaces are requested (RTM_GETNSID) when an unknown id appears.
 */

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
