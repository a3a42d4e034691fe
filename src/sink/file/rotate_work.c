// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate_work.h"

#include "rotate_cut.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Names --------------------------------------------------------------------- */

int rotate_move(int dir_fd, const char *from, const char *to)
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

/* NAME.part becomes NAME, or what comes next that is free. */
static int give_final_name(const struct rotate_work *work, int dir_fd,
			   const char *name)
{
	rotate_name part, final;
	int err = -EEXIST;

	snprintf(part, sizeof(part), "%.*s" ROTATE_PART,
		 (int)(sizeof(part) - sizeof(ROTATE_PART)), name);
	snprintf(final, sizeof(final), "%s", name);
	for (unsigned int n = 1; err == -EEXIST && n < 100000; n++) {
		err = rotate_move(dir_fd, part, final);
		rotate_names_number(work->names, name, n, final);
	}
	return err;
}

static int finish(struct rotate_work *work, int dir_fd, int fd, const char *name)
{
	int err = fdatasync(fd) ? -errno : give_final_name(work, dir_fd, name);

	work->finished += !err;
	return err;
}

/* ---- The directory ---------------------------------------------------------------- */

struct list {
	char **names;
	size_t n;
};

static void free_list(struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->names[i]);
	free(list->names);
}

static int add_name(struct list *list, const char *name)
{
	char **names = reallocarray(list->names, list->n + 1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	list->names = names;
	names[list->n] = strdup(name);
	if (!names[list->n])
		return -ENOMEM;
	list->n++;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Final names with @tail behind, in order. */
static int read_list(const struct rotate_work *work, const char *tail,
		     struct list *ret_list)
{
	struct list list = { 0 };
	const struct dirent *entry;
	DIR *dir = opendir(work->names->dir);
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir)))
		if (rotate_names_match(work->names, entry->d_name, tail))
			err = add_name(&list, entry->d_name);
	closedir(dir);
	if (err) {
		free_list(&list);
		return err;
	}
	if (list.n)
		qsort(list.names, list.n, sizeof(*list.names), compare_names);
	*ret_list = list;
	return 0;
}

/* ---- What crashes have left --------------------------------------------------------- */

static bool is_own(const struct rotate_work *work, const char *name)
{
	for (const struct rotate_file *file = work->files; file; file = file->next)
		if (!strcmp(file->name, name))
			return true;
	return false;
}

static int recover_file(struct rotate_work *work, int dir_fd, char *part)
{
	cleanup_fd int fd = openat(dir_fd, part,
				   O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint64_t size;
	int err;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return 0; /* another process is about to finish it */
	err = rotate_cut(fd, &size);
	if (err)
		return err;
	if (!size)
		return unlinkat(dir_fd, part, 0) ? -errno : 0;
	part[strlen(part) - strlen(ROTATE_PART)] = '\0';
	return finish(work, dir_fd, fd, part);
}

static int recover_files(struct rotate_work *work, int dir_fd)
{
	struct list list;
	int err = read_list(work, ROTATE_PART, &list);

	if (err)
		return err;
	for (size_t i = 0; i < list.n; i++) {
		char *part = list.names[i];
		size_t len = strlen(part) - strlen(ROTATE_PART);
		rotate_name name;

		snprintf(name, sizeof(name), "%.*s", (int)len, part);
		if (!is_own(work, name))
			err = recover_file(work, dir_fd, part) ?: err;
	}
	free_list(&list);
	work->recovers = err;
	return err;
}

/* ---- The work -------------------------------------------------------------------- */

/* Another process removed it: nothing is left to do. */
static int finish_files(struct rotate_work *work, int dir_fd)
{
	while (work->files) {
		struct rotate_file *file = work->files;
		int err = finish(work, dir_fd, file->fd, file->name);

		if (err && err != -ENOENT)
			return err;
		work->files = file->next;
		close(file->fd);
		free(file);
	}
	return 0;
}

static int remove_oldest(struct rotate_work *work, int dir_fd)
{
	struct list list;
	int err;

	if (!work->keep)
		return 0;
	err = read_list(work, "", &list);
	if (err)
		return err;
	for (size_t i = 0; i + work->keep < list.n; i++) {
		if (unlinkat(dir_fd, list.names[i], 0) && errno != ENOENT)
			err = -errno;
		else
			work->removed++;
	}
	free_list(&list);
	return err;
}

/* After an error the kernel takes what it could not write for written. */
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
		/* Where nothing is, nothing is left over. */
		work->recovers &= err != -ENOENT;
		work->err = err == -ENOENT && !work->files ? 0 : err;
		return;
	}
	work->err = work->recovers ? recover_files(work, dir_fd) : 0;
	err = finish_files(work, dir_fd);
	err = sync_part(work) ?: err;
	if (fsync(dir_fd))
		err = -errno;
	work->is_synced = !err;
	work->err = err ?: work->err;
	work->err = remove_oldest(work, dir_fd) ?: work->err;
}

void rotate_work_free(void *arg)
{
	struct rotate_work *work = arg;

	if (!work)
		return;
	for (struct rotate_file *file = work->files, *next; file; file = next) {
		next = file->next;
		close(file->fd);
		free(file);
	}
	close_fd(&work->part_fd);
	free(work);
}
