/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The followed namespaces with their interfaces: what the files of this room share. host.h is for others. */
#ifndef NETOBS_HOST_HOST_STATE_H
#define NETOBS_HOST_HOST_STATE_H

#include "base/log.h"
#include "netif.h"

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
	bool looks_beyond; /* namespaces that are not followed are listed, see peers.h */
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

/* As host_append_netns(), or with the index of one whose last flows have been reported. */
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

#endif
