/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Follows the interfaces of one or more network namespaces as they come, go
 * and change, and keeps the programs on those that were asked for.
 */
#ifndef NETOBS_LIB_WATCH_H
#define NETOBS_LIB_WATCH_H

#include "netif.h"
#include "pattern.h"
#include "store.h"

enum { LINK_KINDS = 2 };

/* One network namespace. */
struct place {
	uint16_t index; /* in watch.places; flow_key.netns */
	char *name;	/* as given; NULL: where the context was started */
	int ns_fd;	/* -1: the caller's */
	uint32_t inode;
	int rtnl_fd;
	struct patterns include; /* none: all interfaces */
	bool everything;
	struct netifs netifs;
	struct programs programs[LINK_KINDS]; /* fds are -1 until needed */
};

struct watch {
	const struct log *log;
	struct store *store;
	struct attach_options attach;
	struct patterns exclude;
	struct place *places;
	uint32_t n_places;
	uint32_t n_attached; /* interfaces */
	int attach_error;    /* the last one */
};

/*
 * Take over the options @interfaces and @exclude, NULL-terminated lists or
 * NULL. Nothing in the kernel is touched.
 */
int watch_init(struct watch *watch, const struct log *log,
	       const char *const *interfaces, const char *const *exclude);

/* Find the interfaces and attach. On failure call watch_done(). */
int watch_start(struct watch *watch, struct store *store,
		const struct attach_options *attach);

/* The place's rtnl_fd has something to read. */
int watch_update(struct watch *watch, struct place *place);

/* Take all programs off. The interfaces stay known, for the last flows. */
void watch_detach(struct watch *watch);

/* Forget interfaces that went away before @before_ns (CLOCK_BOOTTIME). */
void watch_sweep(struct watch *watch, int64_t before_ns);

void watch_done(struct watch *watch);

/* NULL when it is not known. */
const struct netif *watch_find(const struct watch *watch, uint16_t place,
			       uint32_t ifindex);

#endif
