// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate_part.h"

#include "rotate_birth.h"
#include "rotate_cut.h"
#include "rotate_work.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBERS = 100000 };

static int open_dir(const struct rotate_names *names)
{
	int fd = open(names->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Not to be taken for another's: neither by its name nor by what it becomes. */
static int try_name(int dir_fd, const char *part, const char *final)
{
	rotate_name waiting;

	if (!faccessat(dir_fd, final, F_OK, AT_SYMLINK_NOFOLLOW))
		return -EEXIST;
	snprintf(waiting, sizeof(waiting), "%.*s" ROTATE_PART,
		 (int)(sizeof(waiting) - sizeof(ROTATE_PART)), final);
	return rotate_move(dir_fd, part, waiting);
}

int rotate_part_rename(const struct rotate_names *names, time_t start,
		       const char *suffix, struct rotate_last *last,
		       rotate_name ret_name)
{
	cleanup_fd int dir_fd = open_dir(names);
	unsigned int n = last->start == start ? last->number + 1 : 0;
	rotate_name first, name;
	int err = -EEXIST;

	if (dir_fd < 0)
		return dir_fd;
	rotate_names_make(names, start, suffix, first);
	for (; err == -EEXIST && n < NUMBERS; n++) {
		rotate_names_number(names, first, n, name);
		err = try_name(dir_fd, names->part, name);
	}
	if (err)
		return err;
	*last = (struct rotate_last){ start, n - 1 };
	memcpy(ret_name, name, sizeof(rotate_name));
	return 0;
}

/* When it was made, where the file system knows; else when it was written last. */
static time_t start_of(int fd, const struct stat *info)
{
	time_t start;

	return rotate_birth_time(fd, &start) ? info->st_mtime : start;
}

/* -EAGAIN: it is out of the way, try again. */
static int take_over(int fd, const struct rotate_names *names)
{
	struct rotate_last none = { .start = -1 };
	struct stat info;
	rotate_name name;
	int err;

	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (fstat(fd, &info))
		return -errno;
	if (!S_ISREG(info.st_mode))
		return -EEXIST;
	if (!info.st_size)
		return 0;
	err = rotate_part_rename(names, start_of(fd, &info), rotate_suffix(fd),
				 &none, name);
	return err ?: -EAGAIN;
}

static int try_open(const struct rotate_names *names, mode_t mode, int *ret_fd)
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

int rotate_part_open(struct rotate_part *part, const struct rotate_names *names,
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
	*part = (struct rotate_part){ .fd = fd,
				      .dev = info.st_dev,
				      .ino = info.st_ino };
	return 0;
}

static int find(const struct rotate_names *names, struct stat *ret_info)
{
	cleanup_fd int dir_fd = open_dir(names);

	if (dir_fd < 0)
		return dir_fd;
	return fstatat(dir_fd, names->part, ret_info, AT_SYMLINK_NOFOLLOW) ?
		       -errno :
		       0;
}

bool rotate_part_is_there(const struct rotate_part *part,
			  const struct rotate_names *names)
{
	struct stat info;

	return !find(names, &info) && info.st_dev == part->dev &&
	       info.st_ino == part->ino;
}

void rotate_part_remove(struct rotate_part *part, const struct rotate_names *names)
{
	cleanup_fd int dir_fd = open_dir(names);

	if (dir_fd >= 0 && rotate_part_is_there(part, names))
		unlinkat(dir_fd, names->part, 0);
	close_fd(&part->fd);
}
