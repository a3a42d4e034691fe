/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Which network namespace has an inode: the kernel does not say, so all that there are are looked at. */
#ifndef NETOBS_HOST_NETNS_SEARCH_H
#define NETOBS_HOST_NETNS_SEARCH_H

#include <stdint.h>

/**
 * Open the namespace with that inode: the thread's own, that of the process @pid, one with a name, or that
 * of any process, of which each takes some microseconds.
 *
 * @param pid  that is likely to be in it; 0: none is known
 * @return a descriptor; -ENOENT: none is found; -EACCES: of some processes it cannot be known
 */
int netns_search(uint32_t inode, uint32_t pid);

#endif
