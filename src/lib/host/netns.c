/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "netns.h"

#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

const char *const netns_directories[] = { "/run/netns", "/run/docker/netns",
					  NULL };

static int open_netns(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int netns_open_own(void)
{
	return open_netns("/proc/thread-self/ns/net");
}

/* 0; -ENAMETOOLONG */
static int path_of(const char *name, char *path, size_t size)
{
	int len = snprintf(path, size, "%s%s",
			   name[0] == '/' ? "" : "/run/netns/", name);

	return len < (int)size ? 0 : -ENAMETOOLONG;
}

int netns_open(const char *name)
{
	char path[PATH_MAX];

	return path_of(name, path, sizeof(path)) ?: open_netns(path);
}

int netns_inode(int fd, uint32_t *ret_inode)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*ret_inode = st.st_ino;
	return 0;
}

int netns_check(int fd)
{
	return ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET ? 0 : -ENOTTY;
}

static int find_own(uint32_t *ret_inode)
{
	cleanup_fd int own = netns_open_own();

	return own < 0 ? own : netns_inode(own, ret_inode);
}

int netns_find(const char *name, uint32_t *ret_inode)
{
	char path[PATH_MAX];
	struct statfs fs;
	struct stat st;

	if (!name)
		return find_own(ret_inode);
	/* A name whose namespace is being created is a plain file for a moment. */
	if (path_of(name, path, sizeof(path)) || statfs(path, &fs) ||
	    fs.f_type != NSFS_MAGIC || stat(path, &st))
		return -ENOENT;
	*ret_inode = st.st_ino;
	return 0;
}

int netns_move(int fd)
{
	return setns(fd, CLONE_NEWNET) ? -errno : 0;
}

int netns_enter(int fd, int *ret_back)
{
	cleanup_fd int back = netns_open_own();
	int err = back < 0 ? back : netns_move(fd);

	if (err)
		return err;
	*ret_back = TAKE_FD(back);
	return 0;
}

void netns_leave(int back)
{
	/* The thread came from there a moment ago; it has the right to return. */
	int err = setns(back, CLONE_NEWNET);

	assert(!err);
	(void)err;
	close(back);
}
