/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Network namespaces: finding them, and working in one for a moment. */
#ifndef NETOBS_HOST_NETNS_H
#define NETOBS_HOST_NETNS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

/* Open the calling thread's own namespace. */
int netns_open_own(void);

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

/* Finds the network namespace with an inode: the kernel has no such lookup, so all namespaces are tried. */

/**
 * Open the namespace with that inode, if it is one of these: the thread's own, that of the process
 * @pid, or one with a name.
 *
 * @param pid  a process that is likely to be in it; 0: none is known
 * @return a descriptor; -ENOENT: it is none of these, as far as can be known
 */
int netns_search(uint32_t inode, uint32_t pid);

/*
 * A walk over the namespaces that have names, those of ip-netns(8), Docker and CNI, and then over those of
 * all processes, each of which takes some microseconds. Zeroes: at rest.
 */
struct netns_walk {
	DIR *dir;	/* of names, or of processes; NULL: at rest */
	uint32_t place; /* index of that directory */
	bool is_denied; /* some namespaces could not be opened */
};

/** Begin a walk. @return 0, or -errno */
int netns_walk_begin(struct netns_walk *walk);

/**
 * Open the next namespace.
 *
 * @param ret_fd  owned by the caller; -1: it cannot be opened, or there is none in this place
 * @return false: there is no further one, and the walk is at rest
 */
bool netns_walk_next(struct netns_walk *walk, int *ret_fd, uint32_t *ret_inode);

/* End a walk. */
void netns_walk_end(struct netns_walk *walk);

#endif
