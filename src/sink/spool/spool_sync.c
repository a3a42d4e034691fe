// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "spool_sync.h"

#include "base/util.h"
#include "spool_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct sync_work *sync_work_new(int dir_fd, size_t n_files)
{
	struct sync_work *work = calloc(1, sizeof(*work));

	if (!work)
		return NULL;
	work->files = calloc(n_files + 1, sizeof(*work->files));
	work->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	if (work->files && work->dir_fd >= 0)
		return work;
	sync_work_free(work);
	return NULL;
}

int sync_work_add(struct sync_work *work, const struct sync_file *file, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return -errno;
	work->files[work->n_files] = *file;
	work->files[work->n_files++].fd = copy;
	return 0;
}

void sync_work_free(void *arg)
{
	struct sync_work *work = arg;

	if (!work)
		return;
	for (size_t i = 0; i < work->n_files; i++) {
		close(work->files[i].fd);
		close_fd(&work->files[i].to_fd);
	}
	close_fd(&work->dir_fd);
	free(work->files);
	free(work->forgotten);
	free(work);
}

static int sync_file(const struct sync_file *file)
{
	int err = 0, fd = file->to_fd < 0 ? file->fd : file->to_fd;

	if (file->to_fd >= 0)
		err = segment_copy(file->fd, file->to_fd, file->to);
	else if (file->is_in_doubt)
		err = segment_rewrite(file->fd, file->from, file->to,
				      file->is_damaged);
	if (!err && fdatasync(fd))
		err = -errno;
	return err;
}

static int sync_files(struct sync_work *work)
{
	int first = 0;

	for (size_t i = 0; i < work->n_files; i++) {
		struct sync_file *file = &work->files[i];

		file->err = sync_file(file);
		first = first ?: file->err;
	}
	return first;
}

static int sync_names(const struct sync_work *work)
{
	bool is_any_new = false;

	for (size_t i = 0; i < work->n_files; i++) {
		const struct sync_file *file = &work->files[i];
		int err = 0;

		is_any_new |= !file->is_named;
		if (!file->is_named && work->are_names_in_doubt)
			err = spool_dir_rename_again(work->dir_fd,
						     file->first_seq);
		if (err)
			return err;
	}
	if (is_any_new && fsync(work->dir_fd))
		return -errno;
	return work->is_dir_new ? spool_dir_sync_parent(work->dir_fd) : 0;
}

/* Records behind the acknowledged ones need not be durable for that. */
static int note_progress(struct sync_work *work, bool is_durable)
{
	struct spool_progress progress = work->after;
	int err;

	if (!work->is_progress_due)
		return 0;
	if (!is_durable)
		progress.durable = work->before.durable;
	err = spool_dir_write_progress(work->dir_fd, &progress);
	if (!err)
		work->noted = progress;
	return err;
}

static int remove_forgotten(struct sync_work *work)
{
	for (; work->n_removed < work->n_forgotten; work->n_removed++) {
		char name[SPOOL_NAME_SIZE];

		spool_dir_name(work->forgotten[work->n_removed], name);
		if (unlinkat(work->dir_fd, name, 0) && errno != ENOENT)
			return -errno;
	}
	return 0;
}

void sync_work_do(void *arg)
{
	struct sync_work *work = arg;
	int err = sync_files(work), note_err;

	work->noted = work->before;
	work->names_err = sync_names(work);
	err = err ?: work->names_err;
	note_err = note_progress(work, !err);
	if (!note_err)
		note_err = remove_forgotten(work);
	work->err = err ?: note_err;
}
