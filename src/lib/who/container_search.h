/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A search for the containers in the namespaces that the links of some namespaces lead to. It owns
 * all data that it needs, and may run on a thread of its own.
 */
#ifndef NETOBS_WHO_CONTAINER_SEARCH_H
#define NETOBS_WHO_CONTAINER_SEARCH_H

#include "container_facts.h"

#include <stdbool.h>
#include <stdint.h>

struct shared_fd;

/* A namespace with links, and a socket in it to ask for ids. */
struct container_asked {
	uint16_t netns;	      /* the caller's index */
	struct shared_fd *ns; /* NULL: the thread's own */
	int fd;
	int32_t own_nsid; /* the id that it has for the thread's namespace; < 0: none */
};

/* A namespace of containers, by the id that @netns has for it. */
struct container_found {
	uint16_t netns;
	int32_t nsid;
	struct cgroup_names names; /* of a pod: without the container; empty: there are several */
};

struct container_search {
	struct container_asked *asked;
	uint32_t n_asked;
	struct container_found *found;
	uint32_t n_found, capacity;
};

/** With room for @max namespaces. NULL: no memory */
struct container_search *container_search_new(uint32_t max);
void container_search_free(void *search);

/** Add a namespace that is to be asked. */
void container_search_add(struct container_search *search, uint16_t netns,
			  struct shared_fd *ns);

/** Look at all control groups. Moves the calling thread into these namespaces, and back. */
void container_search_run(void *search);

/** @return NULL: there is no container, or several */
const struct cgroup_names *
container_search_find(const struct container_search *search, uint16_t netns,
		      int32_t nsid);

#endif
