/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The containers that pairs of interfaces lead to: those whose processes are in the namespace of the
 * other end. The paths of control groups have the IDs of containers, and their processes are listed
 * there; the kernel tells the id that one namespace has for the namespace of a process (RTM_GETNSID),
 * and links to it have that id. So this takes no privileges, and no access to /proc of other users.
 *
 * A thread searches, because thousands of groups take longer than a loop may.
 */
#ifndef NETOBS_WHO_CONTAINERS_H
#define NETOBS_WHO_CONTAINERS_H

#include "host/host.h"
#include "container_facts.h"

struct contained;
struct worker;

struct containers {
	const struct host *host; /* NULL: it is off */
	struct worker *worker;
	struct contained *list; /* interfaces, as of the last search */
	uint32_t n;
	uint64_t pairs; /* a hash of the pairs at the last search */
	int64_t searched_ns,
		wait_ns; /* CLOCK_BOOTTIME; until the next one, at most */
};

/** @return 0; -ENOMEM, -errno */
int containers_init(struct containers *containers, const struct host *host);

/** Does not wait for a search. A struct of zeroes stays as it is. */
void containers_done(struct containers *containers);

/** @return a descriptor that is readable when containers_collect() is due; -1: it is off */
int containers_fd(const struct containers *containers);

/** Begin a search if one is due: pairs have changed since the last one, or it was long ago. */
void containers_look(struct containers *containers);
void containers_collect(struct containers *containers);

/**
 * @return the container, or the pod, that has the other end of @netif, as of the last search; of
 *         a pod, whose containers share a namespace, only its UID. NULL: none, several, or it is
 *         not known
 */
const struct cgroup_names *containers_find(const struct containers *containers,
					   const struct netns *netns,
					   const struct netif *netif);

#endif
