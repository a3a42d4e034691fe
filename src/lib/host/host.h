/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The interfaces of one or more network namespaces, followed over netlink as they
 * appear, disappear and change, and reported to listeners. Nothing is loaded or
 * attached here.
 */
#ifndef NETOBS_HOST_HOST_H
#define NETOBS_HOST_HOST_H

#include "host_state.h"

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
