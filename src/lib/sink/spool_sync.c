// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "spool_sync.h"

#include "util.h"
#include "spool_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct sync_work *sync_work_new(int dir_fd, size_t n_fds)
{
	struct sync_work *work = calloc(1, sizeof(*work));

	if (!work)
		return NULL;
	work->fds = calloc(n_fds + 1, sizeof(*work->fds));
	work->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	if (work->fds && work->dir_fd >= 0)
		return work;
	sync_work_free(work);
	return NULL;
}

int sync_work_add(struct sync_work *work, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return -errno;
	work->fds[work->n_fds++] = copy;
	return 0;
}

void sync_work_free(void *arg)
{
	struct sync_work *work = arg;

	if (!work)
		return;
	for (size_t i = 0; i < work->n_fds; i++)
		close(work->fds[i]);
	close_fd(&work->dir_fd);
	free(work->fds);
	free(work->forgotten);
	free(work);
}

static int sync_files(const struct sync_work *work)
{
	for (size_t i = 0; i < work->n_fds; i++)
		if (fdatasync(work->fds[i]))
			return -errno;
	if (work->has_new_files && fsync(work->dir_fd))
		return -errno;
	return 0;
}

static int remove_forgotten(const struct sync_work *work)
{
	for (size_t i = 0; i < work->n_forgotten; i++) {
		char name[SPOOL_NAME_SIZE];

		spool_dir_name(work->forgotten[i], name);
		if (unlinkat(work->dir_fd, name, 0) && errno != ENOENT)
			return -errno;
	}
	return 0;
}

void sync_work_do(void *arg)
{
	struct sync_work *work = arg;

	work->err = sync_files(work);
	if (!work->err && work->is_ack_new)
		work->err = spool_dir_write_acked(work->dir_fd, work->acked);
	if (!work->err)
		work->err = remove_forgotten(work);
}
