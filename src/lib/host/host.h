/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The interfaces of one or more network namespaces, followed over netlink as they
 * appear, disappear and change, and reported to listeners. Nothing is loaded or
 * attached here.
 */
#ifndef NETOBS_HOST_HOST_H
#define NETOBS_HOST_HOST_H

#include "base/log.h"
#include "netif.h"
#include "overlays.h"

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

	/* For beyond.c: nothing is observed here, and it is listed by an id. */
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

enum host_event {
	HOST_CAME,
	HOST_CHANGED,
	HOST_UNSURE, /* messages were lost: it exists, and may be another interface */
	HOST_GONE,
};

/* A module to which interfaces are reported. Pointers are valid during a call. */
struct host_listener {
	void (*on_netif)(void *ctx, struct netns *netns, struct netif *netif,
			 enum host_event event);
	/* Called after some events, once the topology is up to date. Or NULL. */
	void (*on_settled)(void *ctx);
	void *ctx;

	struct host_listener *next;
};

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

/* Whether packets of one namespace may reach the other one with the same tuple. */
static inline bool host_joins(const struct host *host, uint16_t a, uint16_t b)
{
	return host && a < host->n_netns && b < host->n_netns &&
	       host->netns[a].domain == host->netns[b].domain;
}

void host_init(struct host *host, const struct log *log);
void host_done(struct host *host);

/* Report events to @listener, which the caller owns. */
void host_subscribe(struct host *host, struct host_listener *listener);

/*
 * Find or add the namespace of a name; NULL: the caller's own. host_open() follows it. Pointers to
 * other namespaces become invalid.
 *
 * @return 0; -ENOMEM
 */
int host_ensure_netns(struct host *host, const char *name, uint16_t *ret_index);

/* Add a namespace without a name, not open yet. NULL: no memory. */
struct netns *host_add_netns(struct host *host);

/*
 * Add a namespace that an earlier process followed, for the flows that it left: with the
 * next index, before any other one is added.
 *
 * @param is_followed  it will be opened; else its index is in use until its interfaces
 *                     are swept
 * @return 0; -ENOMEM
 */
int host_restore_netns(struct host *host, const char *name, uint32_t inode,
		       bool is_followed);

/*
 * Add an interface of a restored namespace, as one that is gone. @return it, to be filled by the
 * caller; NULL: no memory
 */
struct netif *host_restore_netif(struct host *host, uint16_t netns,
				 uint32_t ifindex);

/*
 * Follow the namespace @index, and wait for the list of its interfaces. Nothing is
 * done if it is followed already.
 *
 * @param ret_index  @index, or the one that follows the same namespace by another
 *                   name; @index is retired then
 * @return 0, or -errno, which was logged
 */
int host_open(struct host *host, uint16_t index, uint16_t *ret_index);

/*
 * Stop following the namespace. Its interfaces are reported as gone, and kept as such until they
 * are swept.
 */
void host_retire(struct host *host, uint16_t index);

/*
 * Read messages of a namespace whose rtnl_fd is readable. The next call reads the rest.
 */
int host_update(struct host *host, struct netns *netns);

/*
 * Check the names of namespaces: release those that are gone, so that no descriptor of this process
 * keeps them, and follow those that came back. Namespaces may be added.
 */
void host_check_names(struct host *host);

/* @return whether there are names to check */
bool host_has_names(const struct host *host);

/* Update the topology after netif.observed has changed, and report the changes. */
int host_settle(struct host *host);

/*
 * Remove interfaces that disappeared before @before_ns (CLOCK_BOOTTIME), and list namespaces that
 * send no notifications.
 */
void host_sweep(struct host *host, int64_t before_ns);

/* @return NULL: the interface is not known */
static inline struct netif *host_find(const struct host *host, uint16_t netns,
				      uint32_t ifindex)
{
	return netns < host->n_netns ?
		       netifs_find(&host->netns[netns].netifs, ifindex) :
		       NULL;
}

/*
 * Visit the interfaces of all followed namespaces, including those that are gone: returns the one
 * after @netif of *@netns; NULL: the first one.
 *
 * @return NULL: there are no more
 */
struct netif *host_next_netif(const struct host *host, struct netns **netns,
			      const struct netif *netif);

/* @netns: a variable, which has the namespace of @it; @it: a variable of the loop. */
#define host_for_each_netif(host, netns, it)                               \
	for (struct netif *it = host_next_netif(host, &(netns), NULL); it; \
	     it = host_next_netif(host, &(netns), it))

#endif
