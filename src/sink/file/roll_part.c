// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "roll_part.h"

#include "roll_birth.h"
#include "roll_cut.h"
#include "roll_work.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBERS = 100000 };

static int open_dir(const struct roll_names *names)
{
	int fd = open(names->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Not to be taken for another's: neither by its name nor by what it becomes. */
static int try_name(int dir_fd, const char *part, const char *final)
{
	roll_name waiting;

	if (!faccessat(dir_fd, final, F_OK, AT_SYMLINK_NOFOLLOW))
		return -EEXIST;
	snprintf(waiting, sizeof(waiting), "%.*s" ROLL_PART,
		 (int)(sizeof(waiting) - sizeof(ROLL_PART)), final);
	return roll_move(dir_fd, part, waiting);
}

int roll_part_rename(const struct roll_names *names, time_t start,
		     const char *suffix, struct roll_last *last,
		     roll_name ret_name)
{
	cleanup_fd int dir_fd = open_dir(names);
	unsigned int n = last->start == start ? last->number + 1 : 0;
	roll_name first, name;
	int err = -EEXIST;

	if (dir_fd < 0)
		return dir_fd;
	roll_names_make(names, start, suffix, first);
	for (; err == -EEXIST && n < NUMBERS; n++) {
		roll_names_number(names, first, n, name);
		err = try_name(dir_fd, names->part, name);
	}
	if (err)
		return err;
	*last = (struct roll_last){ start, n - 1 };
	memcpy(ret_name, name, sizeof(roll_name));
	return 0;
}

/* When it was made, where the file system knows; else when it was written last. */
static time_t start_of(int fd, const struct stat *info)
{
	time_t start;

	return roll_birth_time(fd, &start) ? info->st_mtime : start;
}

/* -EAGAIN: it is out of the way, try again. */
static int take_over(int fd, const struct roll_names *names)
{
	struct roll_last none = { .start = -1 };
	struct stat info;
	roll_name name;
	int err;

	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (fstat(fd, &info))
		return -errno;
	if (!S_ISREG(info.st_mode))
		return -EEXIST;
	if (!info.st_size)
		return 0;
	err = roll_part_rename(names, start_of(fd, &info), roll_suffix(fd),
			       &none, name);
	return err ?: -EAGAIN;
}

static int try_open(const struct roll_names *names, mode_t mode, int *ret_fd)
{
	cleanup_fd int dir_fd = open_dir(names);
	cleanup_fd int fd = -1;
	int err;

	if (dir_fd < 0)
		return dir_fd;
	fd = openat(dir_fd, names->part,
		    O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK |
			    O_NOCTTY | O_CLOEXEC,
		    mode);
	if (fd < 0)
		return -errno;
	err = take_over(fd, names);
	if (!err)
		*ret_fd = TAKE_FD(fd);
	return err;
}

int roll_part_open(struct roll_part *part, const struct roll_names *names,
		   mode_t mode)
{
	struct stat info;
	int fd = -1, err;

	err = try_open(names, mode, &fd);
	if (err == -EAGAIN)
		err = try_open(names, mode, &fd);
	if (err)
		return err;
	if (fstat(fd, &info)) {
		err = -errno;
		close(fd);
		return err;
	}
	*part = (struct roll_part){ .fd = fd,
				    .dev = info.st_dev,
				    .ino = info.st_ino };
	return 0;
}

static int find(const struct roll_names *names, struct stat *ret_info)
{
	cleanup_fd int dir_fd = open_dir(names);

	if (dir_fd < 0)
		return dir_fd;
	return fstatat(dir_fd, names->part, ret_info, AT_SYMLINK_NOFOLLOW) ?
		       -errno :
		       0;
}

bool roll_part_is_there(const struct roll_part *part,
			const struct roll_names *names)
{
	struct stat info;

	return !find(names, &info) && info.st_dev == part->dev &&
	       info.st_ino == part->ino;
}

void roll_part_remove(struct roll_part *part, const struct roll_names *names)
{
	cleanup_fd int dir_fd = open_dir(names);

	if (dir_fd >= 0 && roll_part_is_there(part, names))
		unlinkat(dir_fd, names->part, 0);
	close_fd(&part->fd);
}
