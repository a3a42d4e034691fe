// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Makes a spool durable, in two halves: a thread does the work that waits for the disk, and the spool
 * applies the results.
 *
 * The kernel reports a failed sync once, and then treats the data as saved. So records of a failed sync
 * are in doubt, whatever a later sync reports: neither they nor later records count as durable before
 * they are acknowledged. This is also true of records that an earlier process had not noted as durable.
 */
#include "spool.h"

#include "base/util.h"
#include "base/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Work of the thread ------------------------------------------------------ */

/* A segment's file. */
struct sync_file {
	int fd;
	uint64_t first_seq;
	uint64_t to; /* bytes of its records that are to become durable */
	struct position end; /* behind these */
	bool is_named;
	int err; /* the result */
};

struct sync_work {
	int dir_fd;
	struct sync_file *files;
	size_t n_files;
	struct spool_progress before, after; /* @after: if all of it succeeds */
	bool is_progress_due;
	uint64_t *forgotten; /* segments to be removed, once acked is durable */
	size_t n_forgotten;
	int write_err; /* not all could be written that was to be saved */

	/* The results. */
	int names_err;
	struct spool_progress noted;
	size_t n_removed;
	int err; /* the first of all */
};

static struct sync_work *sync_work_new(int dir_fd, size_t n_files)
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

static int sync_work_add(struct sync_work *work, const struct sync_file *file,
			 int fd)
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
	for (size_t i = 0; i < work->n_files; i++)
		close(work->files[i].fd);
	close_fd(&work->dir_fd);
	free(work->files);
	free(work->forgotten);
	free(work);
}

static int sync_files(struct sync_work *work)
{
	int first = 0;

	for (size_t i = 0; i < work->n_files; i++) {
		struct sync_file *file = &work->files[i];

		file->err = fdatasync(file->fd) ? -errno : 0;
		first = first ?: file->err;
	}
	return first;
}

static int sync_names(const struct sync_work *work)
{
	bool is_any_new = false;

	for (size_t i = 0; i < work->n_files; i++)
		is_any_new |= !work->files[i].is_named;
	return is_any_new && fsync(work->dir_fd) ? -errno : 0;
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

static void raise_durable(struct spool *spool, struct position durable)
{
	if (position_is_before(spool->durable, durable))
		spool->durable = durable;
}

/* Acknowledged records need not be synced. */
void spool_find_durable(struct spool *spool)
{
	raise_durable(spool, spool->acked);
	for (const struct segment *segment = spool->oldest;
	     segment && segment->is_named; segment = segment->next) {
		raise_durable(spool, segment->durable);
		if (position_is_before(segment->durable, segment->end))
			break;
	}
}

/* ---- What is to be done -------------------------------------------------------- */

/* Segments that cannot be written stay in memory; the others are written. */
int spool_write_out(struct spool *spool)
{
	int first = 0;

	if (!spool->dir)
		return 0;
	for (struct segment *segment = spool->oldest; segment;
	     segment = segment->next) {
		int err = 0;

		if (segment->fd < 0)
			err = spool_dir_attach(spool->dir, segment);
		err = err ?: segment_write_out(segment);
		first = first ?: err;
	}
	return first;
}

static bool is_unsynced(const struct segment *segment)
{
	return segment->fd >= 0 && (segment->synced < segment->written ||
				    (!segment->is_named && segment->size));
}

static size_t count_unsynced(const struct spool *spool)
{
	size_t n = 0;

	for (const struct segment *segment = spool->oldest; segment;
	     segment = segment->next)
		n += is_unsynced(segment);
	return n;
}

static int add_unsynced(const struct spool *spool, struct sync_work *work)
{
	int err = 0;

	for (const struct segment *segment = spool->oldest; segment && !err;
	     segment = segment->next) {
		struct sync_file file = {
			.first_seq = segment->first.seq,
			.to = segment->written,
			.end = segment->in_file,
			.is_named = segment->is_named,
		};

		if (is_unsynced(segment))
			err = sync_work_add(work, &file, segment->fd);
	}
	return err;
}

/* @return the position up to which records are durable if all syncs succeed */
static struct position find_durable_limit(const struct spool *spool)
{
	const struct segment *segment = spool->oldest;

	while (segment && !segment->is_in_doubt)
		segment = segment->next;
	if (!segment)
		return spool->tail;
	return position_is_before(spool->acked, segment->durable) ?
		       segment->durable :
		       spool->acked;
}

/*
 * The durable position is noted a segment at a time, and at the end. For the next process, everything
 * behind it is in doubt, because it does not know of later syncs.
 */
static bool is_progress_due(const struct spool *spool)
{
	struct position due = find_durable_limit(spool);

	if (!spool->is_closing && spool->newest &&
	    position_is_before(spool->newest->first, due))
		due = spool->newest->first;
	return spool->acked.seq != spool->noted.acked.seq ||
	       position_is_before(spool->noted.durable, due);
}

bool spool_is_settled(const struct spool *spool)
{
	const struct segment *last = spool->newest;

	return !spool->dir ||
	       (!count_unsynced(spool) && !spool->dir->n_forgotten &&
		!is_progress_due(spool) &&
		(!last || last->written == last->size));
}

/* NULL: there is nothing to be done. */
static int make_work(struct spool *spool, struct sync_work **ret_work)
{
	struct spool_dir *dir = spool->dir;
	struct sync_work *work;
	int write_err = spool_write_out(spool), err;

	*ret_work = NULL;
	if (spool_is_settled(spool))
		return write_err;
	work = sync_work_new(dir->fd, count_unsynced(spool));
	if (!work)
		return -errno;
	err = add_unsynced(spool, work);
	if (err) {
		sync_work_free(work);
		return err;
	}
	work->write_err = write_err;
	work->before = spool->noted;
	work->after.acked = spool->acked;
	work->after.durable = write_err ? spool->noted.durable :
					  find_durable_limit(spool);
	work->is_progress_due = is_progress_due(spool);
	work->forgotten = TAKE_PTR(dir->forgotten);
	work->n_forgotten = dir->n_forgotten;
	dir->n_forgotten = 0;
	*ret_work = work;
	return 0;
}

/* ---- What was done --------------------------------------------------------------- */

static struct segment *find_segment(const struct spool *spool, uint64_t first_seq)
{
	struct segment *segment = spool->oldest;

	while (segment && segment->first.seq != first_seq)
		segment = segment->next;
	return segment;
}

static void take_sync_result(struct sync_file *file, int names_err,
			     struct segment *segment)
{
	segment->is_in_doubt |= file->err || (names_err && !file->is_named);
	segment->is_named |= !names_err;
	if (file->err)
		return;
	segment->synced = file->to;
	if (!segment->is_in_doubt)
		segment->durable = file->end;
	else if (!names_err)
		segment->is_closed = true; /* later records are not in doubt */
}

/* Give back segments that still have to be removed. */
static void give_back(struct spool *spool, struct sync_work *work)
{
	for (size_t i = work->n_removed; i < work->n_forgotten; i++)
		spool_dir_forget(spool->dir, work->forgotten[i]);
	sync_work_free(work);
}

/* Take the results of the work, and keep the parts that failed for the next one. */
static int finish_work(struct spool *spool, struct sync_work *work)
{
	int err = work->write_err ?: work->err;

	for (size_t i = 0; i < work->n_files; i++) {
		struct sync_file *file = &work->files[i];
		struct segment *segment = find_segment(spool, file->first_seq);

		if (segment)
			take_sync_result(file, work->names_err, segment);
	}
	spool->noted = work->noted;
	spool_find_durable(spool);
	spool_note_sync(spool, err);
	give_back(spool, work);
	return err;
}

/* ---- Doing it ------------------------------------------------------------------ */

void spool_start_sync(struct spool *spool)
{
	struct sync_work *work;
	int err;

	spool_finish_sync(spool);
	if (!spool->dir || worker_is_busy(spool->syncer))
		return;
	err = make_work(spool, &work);
	if (!work) {
		spool_note_sync(spool, err);
		return;
	}
	err = worker_start(spool->syncer, work);
	if (!err)
		return;
	spool_note_sync(spool, err);
	give_back(spool, work);
}

int spool_sync(struct spool *spool)
{
	struct sync_work *work;
	int err;

	if (!spool->dir)
		return 0;
	worker_wait(spool->syncer, -1);
	spool_finish_sync(spool);
	err = make_work(spool, &work);
	if (!work) {
		spool_note_sync(spool, err);
		return err;
	}
	sync_work_do(work);
	return finish_work(spool, work);
}

void spool_finish_sync(struct spool *spool)
{
	struct sync_work *work = spool->dir ? worker_take(spool->syncer) : NULL;

	if (work)
		finish_work(spool, work);
}

int spool_fd(const struct spool *spool)
{
	return spool->dir ? worker_fd(spool->syncer) : -1;
}
