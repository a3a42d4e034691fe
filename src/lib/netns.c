/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "netns.h"

#include "util.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>

static int open_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int netns_open_own(void)
{
	return open_path("/proc/thread-self/ns/net");
}

int netns_open(const char *name)
{
	char path[PATH_MAX];
	int len;

	if (name[0] == '/')
		return open_path(name);
	len = snprintf(path, sizeof(path), "/run/netns/%s", name);
	return len < (int)sizeof(path) ? open_path(path) : -ENAMETOOLONG;
}

int netns_inode(int fd, uint32_t *ret_inode)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*ret_inode = st.st_ino;
	return 0;
}

int netns_enter(int fd, int *ret_back)
{
	cleanup_fd int back = netns_open_own();

	if (back < 0)
		return back;
	if (setns(fd, CLONE_NEWNET))
		return -errno;
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
