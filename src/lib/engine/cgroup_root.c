// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "control_group.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static int open_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Mount it where no path leads to it, as in ip-netns(8) exec; takes CAP_SYS_ADMIN. */
static int mount_cgroup_root(void)
{
	cleanup_fd int fs = (int)syscall(SYS_fsopen, "cgroup2", FSOPEN_CLOEXEC);
	int root;

	if (fs < 0 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	root = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	return root < 0 ? -errno : root;
}

/* The paths are those of cgroup v2 alone, and beside v1. */
int cgroup_root_open(void)
{
	static const char *const paths[] = { "/sys/fs/cgroup",
					     "/sys/fs/cgroup/unified" };
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (!statfs(paths[i], &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
			return open_directory(paths[i]);
	return mount_cgroup_root();
}
