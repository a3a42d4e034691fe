/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Network namespaces: finding them, and working in one for a moment. */
#ifndef NETOBS_HOST_NETNS_H
#define NETOBS_HOST_NETNS_H

#include <stdint.h>

/* Open the calling thread's own namespace. */
int netns_open_own(void);

/* Directories with names of namespaces; the last one is NULL. */
extern const char *const netns_directories[];

/* Open the namespace that ip-netns(8) calls @name, or that an absolute path names. */
int netns_open(const char *name);

/* @name: NULL: the thread's own. @return 0; -ENOENT: there is no network namespace of that name */
int netns_find(const char *name, uint32_t *ret_inode);

int netns_inode(int fd, uint32_t *ret_inode);

/* @return 0; -ENOTTY: it is no network namespace */
int netns_check(int fd);

/*
 * Move the calling thread into @fd's namespace; @ret_back: its previous one, for netns_leave(),
 * which returns there and closes it.
 */
int netns_enter(int fd, int *ret_back);
void netns_leave(int back);

/* Move the calling thread into @fd's namespace. */
int netns_move(int fd);

#endif
