// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate_disk.h"

#include "base/own_file.h"
#include "base/util.h"
#include "sink/pack/pieces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* ---- The file that is being written --------------------------------------------- */

static int open_dir(const struct rotate_names *names)
{
	int fd = open(names->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

enum { ROTATE_NUMBERS = 100000 };

/* Rename a file within its directory, but not over another. */
static int move_file(int dir_fd, const char *from, const char *to)
{
	if (!syscall(SYS_renameat2, dir_fd, from, dir_fd, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* Not every file system can. */
	if (!faccessat(dir_fd, to, F_OK, AT_SYMLINK_NOFOLLOW))
		return -EEXIST;
	return renameat(dir_fd, from, dir_fd, to) ? -errno : 0;
}

/* Give it the final name with @tail behind, and the next free number from @final's on. */
static int move_to_final(const struct rotate_names *names, int dir_fd,
			 const char *from, struct rotate_final *final,
			 const char *tail)
{
	rotate_name name;
	int err = -EEXIST;

	for (; final->number < ROTATE_NUMBERS; final->number++) {
		rotate_names_format(names, final, "", name);
		if (!faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW))
			continue;
		rotate_names_format(names, final, tail, name);
		err = move_file(dir_fd, from, name);
		if (err != -EEXIST)
			return err;
	}
	return err;
}

int rotate_part_rename(const struct rotate_names *names,
		       struct rotate_final *final)
{
	cleanup_fd int dir_fd = open_dir(names);

	if (dir_fd < 0)
		return dir_fd;
	return move_to_final(names, dir_fd, names->part, final, ROTATE_PART);
}

enum {
	OPEN_FLAGS = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
		     O_CLOEXEC
};

/* Rename a file that a crash has left, or remove it if it is empty. */
static int move_away(const struct rotate_names *names, int dir_fd, int fd)
{
	struct rotate_final final = { .suffix = pieces_suffix(fd) };
	const char *why;
	struct stat info;
	int err;

	if (fstat(fd, &info))
		return -errno;
	if (!S_ISREG(info.st_mode))
		return -EEXIST;
	why = own_file_refusal(dir_fd, &info);
	err = why ? -EPERM : rotate_lock(fd);
	if (err)
		return err;
	if (!info.st_size)
		return unlinkat(dir_fd, names->part, 0) ? -errno : 0;
	/* Not every file system knows when a file was created. */
	if (rotate_birth_time(fd, &final.start))
		final.start = info.st_mtime;
	return rotate_part_rename(names, &final);
}

static int clear_way(const struct rotate_names *names, int dir_fd)
{
	cleanup_fd int fd = openat(dir_fd, names->part, OPEN_FLAGS);
	int err;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	err = move_away(names, dir_fd, fd);
	return err == -ENOENT ? 0 : err; /* another process was faster */
}

int rotate_part_open(const struct rotate_names *names, mode_t mode, int *ret_fd)
{
	cleanup_fd int dir_fd = open_dir(names);
	cleanup_fd int fd = -1;
	int err;

	if (dir_fd < 0)
		return dir_fd;
	err = clear_way(names, dir_fd);
	if (err)
		return err;
	fd = openat(dir_fd, names->part, OPEN_FLAGS | O_CREAT | O_EXCL, mode);
	if (fd < 0)
		return errno == EEXIST ? -EBUSY : -errno;
	err = rotate_lock(fd);
	if (!err)
		*ret_fd = TAKE_FD(fd);
	return err;
}

static bool is_part_in(int dir_fd, int fd, const struct rotate_names *names)
{
	struct stat own, found;

	return !fstat(fd, &own) &&
	       !fstatat(dir_fd, names->part, &found, AT_SYMLINK_NOFOLLOW) &&
	       found.st_dev == own.st_dev && found.st_ino == own.st_ino;
}

bool rotate_part_is_there(int fd, const struct rotate_names *names)
{
	cleanup_fd int dir_fd = open_dir(names);

	return dir_fd >= 0 && is_part_in(dir_fd, fd, names);
}

void rotate_part_remove(int fd, const struct rotate_names *names)
{
	cleanup_fd int dir_fd = open_dir(names);

	if (dir_fd >= 0 && is_part_in(dir_fd, fd, names))
		unlinkat(dir_fd, names->part, 0);
}

/* ---- Complete files -------------------------------------------------------------- */

static int finish_file(struct rotate_work *work, int dir_fd, int fd,
		       struct rotate_final final)
{
	rotate_name part;
	int err;

	if (fdatasync(fd))
		return -errno;
	rotate_names_format(work->names, &final, ROTATE_PART, part);
	err = move_to_final(work->names, dir_fd, part, &final, "");
	work->finished += !err;
	return err;
}

/* -ENOENT: another process removed it, nothing is left to do. */
static int finish_files(struct rotate_work *work, int dir_fd)
{
	for (; work->n_closed < work->n_files; work->n_closed++) {
		const struct rotate_file *file = &work->files[work->n_closed];
		int err = finish_file(work, dir_fd, file->fd, file->final);

		if (err && err != -ENOENT)
			return err;
		close(file->fd);
	}
	return 0;
}

/* ---- Files in the directory ------------------------------------------------------ */

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

typedef int file_fn(struct rotate_work *work, int dir_fd, const char *name,
		    const struct rotate_final *final);

/* Do it in order with the files that have a final name and @tail, but the last @keep. */
static int process_files(struct rotate_work *work, int dir_fd, const char *tail,
			 size_t keep, file_fn *process_one)
{
	struct dirent **found;
	int n_found = scandir(work->names->dir, &found, NULL, compare_names);
	struct rotate_final final;
	size_t n_left = 0;
	int err = 0;

	if (n_found < 0)
		return -errno;
	for (int i = 0; i < n_found; i++)
		n_left += rotate_names_parse(work->names, found[i]->d_name,
					     tail, &final);
	for (int i = 0; i < n_found; i++) {
		const char *name = found[i]->d_name;

		if (rotate_names_parse(work->names, name, tail, &final) &&
		    n_left-- > keep)
			err = process_one(work, dir_fd, name, &final) ?: err;
		free(found[i]);
	}
	free(found);
	return err;
}

static int remove_rotated_file(struct rotate_work *work, int dir_fd,
			       const char *name, const struct rotate_final *final)
{
	(void) final;
	if (!unlinkat(dir_fd, name, 0))
		work->removed++;
	else if (errno != ENOENT)
		return -errno;
	return 0;
}

/* Finish a file that a crash has left, unless work->files or another process has it. */
static int recover_file(struct rotate_work *work, int dir_fd, const char *part,
			const struct rotate_final *final)
{
	cleanup_fd int fd = openat(dir_fd, part,
				   O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat info;
	uint64_t size = 0;
	int err;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &info) || own_file_refusal(dir_fd, &info) ||
	    rotate_lock(fd))
		return 0;
	err = pieces_cut(fd, &size);
	if (err)
		return err;
	if (!size)
		return unlinkat(dir_fd, part, 0) ? -errno : 0;
	return finish_file(work, dir_fd, fd, *final);
}

/* ---- The work -------------------------------------------------------------------- */

/* After an error, the kernel regards data that it could not write as written. */
static int sync_part(struct rotate_work *work)
{
	if (work->part_fd < 0 || !fdatasync(work->part_fd))
		return 0;
	work->is_lost = true;
	return -errno;
}

void rotate_work_do(void *arg)
{
	struct rotate_work *work = arg;
	cleanup_fd int dir_fd =
		open(work->names->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err;

	if (dir_fd < 0) {
		err = -errno;
		/* A directory that does not exist has no files left. */
		work->recovers &= err != -ENOENT;
		work->err = err == -ENOENT && !work->n_files ? 0 : err;
		return;
	}
	if (work->recovers)
		work->err = process_files(work, dir_fd, ROTATE_PART, 0,
					  recover_file);
	work->recovers &= work->err != 0;
	err = finish_files(work, dir_fd);
	err = sync_part(work) ?: err;
	if (fsync(dir_fd))
		err = -errno;
	work->is_synced = !err;
	work->err = err ?: work->err;
	if (!work->keep)
		return;
	err = process_files(work, dir_fd, "", work->keep, remove_rotated_file);
	work->err = err ?: work->err;
}
