// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The part of a spool that makes it durable. */
#include "spool.h"

#include "spool_dir.h"
#include "spool_sync.h"
#include "util.h"
#include "worker.h"

#include <errno.h>

static int write_out_all(struct spool *spool, size_t *ret_unsynced)
{
	size_t unsynced = 0;

	for (struct segment *segment = spool->oldest; segment;
	     segment = segment->next) {
		int err = segment_write_out(segment);

		if (err)
			return err;
		unsynced += segment->synced < segment->written;
	}
	*ret_unsynced = unsynced;
	return 0;
}

static int add_unsynced(struct spool *spool, struct sync_work *work)
{
	int err = 0;

	for (struct segment *segment = spool->oldest; segment && !err;
	     segment = segment->next)
		if (segment->synced < segment->written)
			err = sync_work_add(work, segment->fd);
	return err;
}

/* NULL: there is nothing to be done. */
static int make_work(struct spool *spool, struct sync_work **ret_work)
{
	struct spool_dir *dir = spool->dir;
	struct sync_work *work;
	size_t unsynced;
	int err = write_out_all(spool, &unsynced);

	if (err)
		return err;
	*ret_work = NULL;
	if (!unsynced && !dir->n_forgotten && !dir->is_changed &&
	    spool->acked.seq == spool->acked_on_disk.seq)
		return 0;
	work = sync_work_new(dir->fd, unsynced);
	if (!work)
		return -errno;
	err = add_unsynced(spool, work);
	if (err) {
		sync_work_free(work);
		return err;
	}
	work->has_new_files = dir->is_changed;
	work->durable = spool->tail;
	work->acked = spool->acked;
	work->is_ack_new = spool->acked.seq != spool->acked_on_disk.seq;
	work->forgotten = TAKE_PTR(dir->forgotten);
	work->n_forgotten = dir->n_forgotten;
	dir->n_forgotten = 0;
	dir->is_changed = false;
	*ret_work = work;
	return 0;
}

/* What it did need not be done again; what it could not do, has to be. */
static void finish_work(struct spool *spool, struct sync_work *work)
{
	struct spool_dir *dir = spool->dir;

	spool_note_error(spool, &spool->sync_error, work->err);
	if (work->err) {
		dir->is_changed |= work->has_new_files;
		for (size_t i = 0; i < work->n_forgotten; i++)
			spool_dir_forget(dir, work->forgotten[i]);
	} else {
		for (struct segment *segment = spool->oldest; segment;
		     segment = segment->next)
			if (!mark_is_before(work->durable, segment->end))
				segment->synced = segment->written;
		spool->durable = work->durable;
		spool->acked_on_disk = work->acked;
	}
	sync_work_free(work);
}

void spool_start_sync(struct spool *spool)
{
	struct sync_work *work;
	int err;

	spool_tend(spool);
	if (!spool->dir || worker_is_busy(spool->syncer))
		return;
	err = make_work(spool, &work);
	if (err)
		spool_note_error(spool, &spool->sync_error, err);
	if (err || !work)
		return;
	err = worker_start(spool->syncer, work);
	if (!err)
		return;
	work->err = err;
	finish_work(spool, work);
}

int spool_sync(struct spool *spool)
{
	struct sync_work *work;
	int err;

	if (!spool->dir)
		return 0;
	worker_wait(spool->syncer);
	spool_tend(spool);
	err = make_work(spool, &work);
	if (err)
		spool_note_error(spool, &spool->sync_error, err);
	if (err || !work)
		return err;
	sync_work_do(work);
	err = work->err;
	finish_work(spool, work);
	return err;
}

void spool_tend(struct spool *spool)
{
	struct sync_work *work = spool->dir ? worker_take(spool->syncer) : NULL;

	if (work)
		finish_work(spool, work);
}

int spool_fd(const struct spool *spool)
{
	return spool->dir ? worker_fd(spool->syncer) : -1;
}
