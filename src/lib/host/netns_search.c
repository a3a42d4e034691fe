// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "netns_search.h"

#include "base/util.h"
#include "netns.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

/* @return the namespace of that path, if it is that one; else -ENOENT, or -EACCES */
static int open_if(const char *path, uint32_t inode)
{
	cleanup_fd int fd = netns_open(path);
	uint32_t its;

	if (fd < 0)
		return fd == -EPERM || fd == -EACCES ? -EACCES : -ENOENT;
	return netns_inode(fd, &its) || its != inode ? -ENOENT : TAKE_FD(fd);
}

static int open_of_process(const char *pid, uint32_t inode)
{
	char path[NAME_MAX + 16];

	snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
	return open_if(path, inode);
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
	return fd < 0 ? -ENOENT : fd;
}

static int open_of_any(uint32_t inode)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	bool is_denied = false;
	int fd = -ENOENT;

	while (dir && fd < 0 && (entry = readdir(dir))) {
		if (isdigit((unsigned char)*entry->d_name))
			fd = open_of_process(entry->d_name, inode);
		is_denied |= fd == -EACCES;
	}
	if (dir)
		closedir(dir);
	return fd < 0 && is_denied ? -EACCES : fd;
}

int netns_search(uint32_t inode, uint32_t pid)
{
	int fd = open_if("/proc/thread-self/ns/net", inode);
	char text[16];

	snprintf(text, sizeof(text), "%u", pid);
	if (fd < 0 && pid)
		fd = open_of_process(text, inode);
	for (size_t i = 0; fd < 0 && netns_directories[i]; i++)
		fd = open_named(netns_directories[i], inode);
	return fd < 0 ? open_of_any(inode) : fd;
}
