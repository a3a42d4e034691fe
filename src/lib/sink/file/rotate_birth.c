// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate_disk.h"

#include <errno.h>
#include <linux/fcntl.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int rotate_birth_time(int fd, time_t *ret_time)
{
	struct statx info;

	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_BTIME, &info))
		return -errno;
	if (!(info.stx_mask & STATX_BTIME))
		return -EOPNOTSUPP;
	*ret_time = (time_t)info.stx_btime.tv_sec;
	return 0;
}
