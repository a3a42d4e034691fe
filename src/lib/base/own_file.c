// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "io.h"

#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

const char *own_file_refusal(int dir_fd, const struct stat *info)
{
	struct stat dir;

	if (!S_ISREG(info->st_mode))
		return "is no file";
	if (!info->st_uid || info->st_uid == geteuid())
		return NULL;
	return !fstatat(dir_fd, "", &dir, AT_EMPTY_PATH) &&
			       dir.st_uid == info->st_uid ?
		       NULL :
		       "belongs to another user";
}

int own_file_open(int dir_fd, const char *name, int flags, const char **ret_why)
{
	cleanup_fd int fd = openat(
		dir_fd, name,
		flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	const char *why;
	struct stat info;

	if (fd < 0 || fstat(fd, &info))
		return -errno;
	why = own_file_refusal(dir_fd, &info);
	if (!why && info.st_mode & (S_IWGRP | S_IWOTH))
		why = "can be written to by other users";
	if (!why)
		return TAKE_FD(fd);
	*ret_why = why;
	return -EPERM;
}
