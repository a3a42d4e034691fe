/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Finds the network namespace with an inode: the kernel has no such lookup, so all namespaces are tried. */
#ifndef NETOBS_HOST_NETNS_SEARCH_H
#define NETOBS_HOST_NETNS_SEARCH_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * Open the namespace with that inode, if it is one of these: the thread's own, that of the process
 * @pid, or one with a name.
 *
 * @param pid  a process that is likely to be in it; 0: none is known
 * @return a descriptor; -ENOENT: it is none of these, as far as can be known
 */
int netns_search(uint32_t inode, uint32_t pid);

/* A walk over the namespaces of all processes, each of which takes some microseconds. Zeroes: at rest. */
struct netns_walk {
	DIR *dir;	/* /proc; NULL: at rest */
	bool is_denied; /* namespaces of some processes could not be read */
};

/** Begin a walk. @return 0, or -errno */
int netns_walk_begin(struct netns_walk *walk);

/**
 * Open the namespace of the next process.
 *
 * @param ret_fd  owned by the caller; -1: it cannot be opened
 * @return false: there is no further process, and the walk is at rest
 */
bool netns_walk_next(struct netns_walk *walk, int *ret_fd, uint32_t *ret_inode);

/* End a walk. */
void netns_walk_end(struct netns_walk *walk);

#endif
