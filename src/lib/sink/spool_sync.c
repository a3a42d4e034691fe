// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "spool_sync.h"

#include "detached.h"
#include "util.h"
#include "spool_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
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

void sync_work_free(struct sync_work *work)
{
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

void sync_work_do(struct sync_work *work)
{
	work->err = sync_files(work);
	if (!work->err && work->is_ack_new)
		work->err = spool_dir_write_acked(work->dir_fd, work->acked);
	if (!work->err)
		work->err = remove_forgotten(work);
}

/* ---- In a thread --------------------------------------------------------------- */

enum state { IDLE, BUSY, DONE };

/* Shared with the thread; whoever lets go of it last frees it. */
struct syncer {
	atomic_int users;
	atomic_int state; /* enum state */
	int fd;
	struct sync_work *work;
};

int syncer_new(struct syncer **ret_syncer)
{
	cleanup_fd int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct syncer *syncer;

	if (fd < 0)
		return -errno;
	syncer = calloc(1, sizeof(*syncer));
	if (!syncer)
		return -ENOMEM;
	syncer->users = 1;
	syncer->fd = TAKE_FD(fd);
	*ret_syncer = syncer;
	return 0;
}

void syncer_free(struct syncer *syncer)
{
	if (!syncer || atomic_fetch_sub(&syncer->users, 1) > 1)
		return;
	sync_work_free(syncer->work);
	close(syncer->fd);
	free(syncer);
}

int syncer_fd(const struct syncer *syncer)
{
	return syncer->fd;
}

static void *run(void *arg)
{
	struct syncer *syncer = arg;

	sync_work_do(syncer->work);
	atomic_store(&syncer->state, DONE);
	eventfd_write(syncer->fd, 1);
	syncer_free(syncer);
	return NULL;
}

int syncer_start(struct syncer *syncer, struct sync_work *work)
{
	int err;

	syncer->work = work;
	atomic_store(&syncer->state, BUSY);
	atomic_fetch_add(&syncer->users, 1);
	err = detached_run(run, syncer, false);
	if (!err)
		return 0;
	atomic_fetch_sub(&syncer->users, 1);
	atomic_store(&syncer->state, IDLE);
	syncer->work = NULL;
	return err;
}

bool syncer_is_busy(const struct syncer *syncer)
{
	return atomic_load(&syncer->state) == BUSY;
}

struct sync_work *syncer_take(struct syncer *syncer)
{
	eventfd_t count;

	if (atomic_load(&syncer->state) != DONE)
		return NULL;
	eventfd_read(syncer->fd, &count);
	atomic_store(&syncer->state, IDLE);
	return TAKE_PTR(syncer->work);
}
