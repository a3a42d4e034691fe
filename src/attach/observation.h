/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Follows the interfaces of one or more network namespaces as they come, go
 * and change, and keeps the programs on those that were asked for.
 */
#ifndef NETOBS_ATTACH_OBSERVATION_H
#define NETOBS_ATTACH_OBSERVATION_H

#include "attacher.h"
#include "host/netif.h"
#include "host/pattern.h"
#include "engine/store.h"

enum { LINK_KINDS = 2 };

/* One network namespace. */
struct place {
	uint16_t index; /* in watch.places; flow_key.netns */
	char *name;	/* as given; NULL: where the context was started */
	struct shared_fd *ns; /* NULL: the caller's, or gone */
	uint32_t inode;
	int rtnl_fd;	 /* -1: the namespace is gone */
	bool is_retired; /* remembered for its last flows; another place observes */
	bool is_polled;	 /* for the owner: rtnl_fd is waited for */
	bool is_listing; /* a dump of all interfaces is under way */
	bool is_overrun; /* messages were lost: another dump has to follow */
	uint32_t listings;
	struct patterns include; /* none: all interfaces */
	bool everything;
	struct netifs netifs;
	/* Both directions; NULL until needed. */
	struct shared_fd *programs[LINK_KINDS][2];
	uint16_t domain;	   /* see topology.h: the lowest place of it */
	bool has_unclear_arrivals; /* packets that may or may not be counted come in */
	bool sees_all_arrivals; /* no interface brings in packets unseen */
	bool forwards_unseen;	/* see topology_forwards_unseen() */
	uint32_t n_arrivals;	/* interfaces observed on the way in */
	int32_t *nsids;		/* of places, in this namespace; see peers.c */
	uint32_t n_nsids;
};

struct watch {
	const struct log *log;
	struct store *store;
	struct attach_options attach;
	struct attacher attacher;
	struct patterns exclude;
	struct place *places;
	uint32_t n_places;
	uint32_t n_attached; /* interfaces */
	uint32_t n_looking;  /* jobs that look for shadows */
	int64_t looked_ns;
	uint64_t incarnations; /* of interfaces, so far */
	int attach_error;      /* the last one */
	bool is_changed;       /* topology_update() is due */
	int64_t leave_ns; /* programs are to be off by then; 0: they are put on */
};

/*
 * Take over the options @interfaces and @exclude, NULL-terminated lists or
 * NULL. Nothing in the kernel is touched.
 */
int watch_init(struct watch *watch, const struct log *log,
	       const char *const *interfaces, const char *const *exclude);

/*
 * Find the interfaces and attach to those that are there; where that takes long,
 * to those that were named. @expedite: see attacher.h. On failure call watch_done().
 */
int watch_start(struct watch *watch, struct store *store,
		const struct attach_options *attach, bool expedite);

/* The place's rtnl_fd has something to read. What is left is read next time. */
int watch_update(struct watch *watch, struct place *place);

/* attacher_fd() polls readable. */
void watch_collect(struct watch *watch);

/* See what may hide packets from the programs, if that was not done lately. */
void watch_look(struct watch *watch);

/* Directions of interfaces where something may. */
uint32_t watch_count_shadowed(const struct watch *watch);

/*
 * Look after the names of namespaces: drop those that are gone, so that nothing of
 * ours keeps them, and observe those that came back. Places may be added.
 */
void watch_check_names(struct watch *watch);

/* Whether there are any names to look after. */
bool watch_has_names(const struct watch *watch);

/*
 * Take all programs off, in the background, and put none on any more. Interfaces are
 * followed as before, for the last flows.
 */
void watch_detach(struct watch *watch);

/* After watch_detach(): they are off, or leave_ns is over and the thread goes on. */
bool watch_is_detached(const struct watch *watch);

/* Forget interfaces that went away before @before_ns (CLOCK_BOOTTIME). */
void watch_sweep(struct watch *watch, int64_t before_ns);

/* Waits as long as watch_is_detached() is false. */
void watch_done(struct watch *watch);

/* NULL when it is not known. */
const struct netif *watch_find(const struct watch *watch, uint16_t place,
			       uint32_t ifindex);

#endif
