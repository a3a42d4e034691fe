/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Which network namespace has an inode: the kernel does not say, so all that there are are looked at. */
#ifndef NETOBS_HOST_NETNS_SEARCH_H
#define NETOBS_HOST_NETNS_SEARCH_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * Open the namespace with that inode, where that is quick: the thread's own, that of the process @pid, or one
 * with a name.
 *
 * @param pid  that is likely to be in it; 0: none is known
 * @return a descriptor; -ENOENT: it is none of these, as far as can be known
 */
int netns_search(uint32_t inode, uint32_t pid);

/* The namespaces of all processes, of which each takes some microseconds. Zeroes: at rest. */
struct netns_walk {
	DIR *dir;	/* /proc; NULL: at rest */
	bool is_denied; /* of some processes it cannot be known */
};

/** Begin. @return 0, or -errno */
int netns_walk_begin(struct netns_walk *walk);

/**
 * Open the namespace of the next process.
 *
 * @param ret_fd  the caller's; -1: it has none that can be opened
 * @return false: there is no further process, and the walk is at rest
 */
bool netns_walk_next(struct netns_walk *walk, int *ret_fd, uint32_t *ret_inode);

/* Come to rest. */
void netns_walk_end(struct netns_walk *walk);

#endif
