// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "netns.h"

#include "base/util.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

/* @return the namespace at that path, if it has that inode; else -ENOENT */
static int open_if(const char *path, uint32_t inode)
{
	cleanup_fd int fd = netns_open(path);
	uint32_t its;

	if (fd < 0 || netns_inode(fd, &its) || its != inode)
		return -ENOENT;
	return TAKE_FD(fd);
}

static int open_named(const char *directory, uint32_t inode)
{
	DIR *dir = opendir(directory);
	const struct dirent *entry;
	char path[NAME_MAX + 64];
	int fd = -ENOENT;

	while (dir && fd < 0 && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (*entry->d_name != '.')
			fd = open_if(path, inode);
	}
	if (dir)
		closedir(dir);
	return fd;
}

int netns_search(uint32_t inode, uint32_t pid)
{
	int fd = open_if("/proc/thread-self/ns/net", inode);
	char path[40];

	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	if (fd < 0 && pid)
		fd = open_if(path, inode);
	for (size_t i = 0; fd < 0 && netns_directories[i]; i++)
		fd = open_named(netns_directories[i], inode);
	return fd;
}

/* ---- All processes ---------------------------------------------------------------------- */

int netns_walk_begin(struct netns_walk *walk)
{
	netns_walk_end(walk);
	walk->dir = opendir("/proc");
	return walk->dir ? 0 : -errno;
}

void netns_walk_end(struct netns_walk *walk)
{
	if (walk->dir)
		closedir(walk->dir);
	*walk = (struct netns_walk){ 0 };
}

static const char *next_process(DIR *dir)
{
	const struct dirent *entry;

	while ((entry = readdir(dir)))
		if (isdigit((unsigned char)*entry->d_name))
			return entry->d_name;
	return NULL;
}

bool netns_walk_next(struct netns_walk *walk, int *ret_fd, uint32_t *ret_inode)
{
	const char *pid = next_process(walk->dir);
	char path[NAME_MAX + 16];
	int fd;

	if (!pid) {
		closedir(TAKE_PTR(walk->dir));
		return false;
	}
	snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
	fd = netns_open(path);
	walk->is_denied |= fd == -EACCES || fd == -EPERM;
	if (fd >= 0 && netns_inode(fd, ret_inode))
		close_fd(&fd);
	*ret_fd = fd < 0 ? -1 : fd;
	return true;
}
