// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

/* Of the whole file. */
static int lock_bytes(int fd, int command, short type, short *ret_type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	if (fcntl(fd, command, &lock))
		return -errno;
	*ret_type = lock.l_type;
	return 0;
}

/* COMPAT(<0.2 of netobs): it took flock(2) alone. So can all who can open the file. */
static int lock_as_before(int fd)
{
	struct stat info;

	if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
		return 0;
	return fstat(fd, &info) || info.st_mode & (S_IRGRP | S_IROTH) ? 0 :
									-EBUSY;
}

/*
 * A lock for writing needs a descriptor that can write, so only a process of ours has it, or of users
 * who may write to the file. Others can have locks for reading, which F_OFD_GETLK for reading does not
 * report. These keep us from the lock, not from the file.
 */
int rotate_lock(int fd)
{
	short type = F_UNLCK;
	int err = lock_bytes(fd, F_OFD_SETLK, F_WRLCK, &type);

	if ((err == -EAGAIN || err == -EACCES) &&
	    !lock_bytes(fd, F_OFD_GETLK, F_RDLCK, &type) && type != F_UNLCK)
		return -EBUSY;
	return lock_as_before(fd);
}
