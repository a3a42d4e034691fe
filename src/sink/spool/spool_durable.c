// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The part of a spool that makes it durable. */
#include "spool.h"

#include "spool_dir.h"
#include "spool_part.h"
#include "spool_sync.h"
#include "base/util.h"
#include "base/worker.h"

#include <errno.h>
#include <string.h>

void spool_find_durable(struct spool *spool)
{
	struct mark durable = spool->oldest ? spool->oldest->first : spool->tail;

	for (const struct segment *segment = spool->oldest;
	     segment && segment->is_named; segment = segment->next) {
		durable = segment->durable;
		if (segment->synced < segment->size)
			break;
	}
	if (mark_is_before(spool->durable, durable))
		spool->durable = durable;
}

/* ---- Outages --------------------------------------------------------------------- */

static void note_result(struct spool *spool, bool *fails, int err)
{
	struct spool_writing *writing = &spool->writing;
	const struct log *log = spool->options.log;
	uint64_t unwritten = spool->dropped[SPOOL_UNWRITTEN].seq;

	*fails = err;
	if (err && !outage_is_on(&writing->outage)) {
		writing->unwritten = unwritten;
		outage_log(&writing->outage, log, NETOBS_LOG_WARNING, "",
			   "spool %s: cannot write: %s; new records are kept in memory, or dropped if they do not fit",
			   spool_name(spool), strerror(-err));
	}
	if (!writing->append_fails && !writing->sync_fails)
		outage_end(&writing->outage, log, NETOBS_LOG_WARNING,
			   "spool %s: can be written to again; %llu records were dropped",
			   spool_name(spool),
			   (unsigned long long)(unwritten - writing->unwritten));
}

/* Smaller ones that still fit somewhere prove nothing. */
static bool has_room_again(const struct spool *spool)
{
	const struct segment *newest = spool->newest;
	uint64_t cost = spool->writing.cost;

	return newest && newest->fd >= 0 && !newest->is_closed &&
	       newest->size + cost <= spool->capacity &&
	       newest->size - newest->written + cost <= newest->buf_size;
}

void spool_note_append(struct spool *spool, int err, size_t len)
{
	struct spool_writing *writing = &spool->writing;

	if (err)
		writing->cost = max_u64(writing->cost, segment_cost(len));
	else if (!writing->append_fails || !has_room_again(spool))
		return;
	else
		writing->cost = 0;
	note_result(spool, &writing->append_fails, err);
}

/* What was in the way of records may be gone by it. */
static void note_sync(struct spool *spool, int err)
{
	note_result(spool, &spool->writing.sync_fails, err);
	if (!err)
		spool_note_append(spool, 0, 0);
}

/* ---- What is to be done -------------------------------------------------------- */

/* What cannot be written stays in memory; the rest goes its way. */
static int write_out_all(struct spool *spool)
{
	int first = 0;

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
			.to_fd = -1,
			.first_seq = segment->first.seq,
			.from = segment->synced,
			.to = segment->written,
			.end = segment->in_file,
			.is_in_doubt = segment->is_in_doubt,
			.is_named = segment->is_named,
			.is_damaged = segment->is_damaged,
		};

		if (!is_unsynced(segment))
			continue;
		if (segment->is_lost)
			err = spool_dir_create(spool->dir, file.first_seq,
					       &file.to_fd);
		err = err ?: sync_work_add(work, &file, segment->fd);
		if (err)
			close_fd(&file.to_fd);
	}
	return err;
}

/*
 * What is durable is noted a segment at a time, and at the end: what is behind it is
 * written again by the next process, which knows of no sync.
 */
static bool is_progress_due(const struct spool *spool)
{
	struct mark durable = spool->noted.durable;

	return spool->acked.seq != spool->noted.acked.seq ||
	       (spool->newest && mark_is_before(durable, spool->newest->first)) ||
	       (spool->is_closing && mark_is_before(durable, spool->tail));
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
	int write_err = write_out_all(spool), err;

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
	work->are_names_in_doubt = dir->are_names_in_doubt;
	work->is_dir_new = dir->is_new;
	work->before = spool->noted;
	work->after.acked = spool->acked;
	work->after.durable = write_err ? spool->noted.durable : spool->tail;
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

/* False: it has no file still. */
static bool take_copy(struct sync_file *file, int names_err,
		      struct segment *segment)
{
	if (file->to_fd < 0 || file->err || names_err ||
	    segment->written != file->to)
		return false;
	close_fd(&segment->fd);
	segment->fd = TAKE_FD(file->to_fd);
	segment->is_lost = false;
	return true;
}

static void take_result(struct sync_file *file, int names_err,
			struct segment *segment)
{
	if (segment->is_lost && !take_copy(file, names_err, segment))
		return;
	segment->is_in_doubt = file->err;
	if (!names_err)
		segment->is_named = true;
	if (file->err == -EBADMSG)
		segment->is_closed = true; /* what follows will not be found */
	if (file->err)
		return;
	segment->synced = file->to;
	segment->durable = file->end;
}

/* Segments that are to be removed still. */
static void give_back(struct spool *spool, struct sync_work *work)
{
	for (size_t i = work->n_removed; i < work->n_forgotten; i++)
		spool_dir_forget(spool->dir, work->forgotten[i]);
	sync_work_free(work);
}

/* What it did need not be done again; what it could not do, has to be. */
static int finish_work(struct spool *spool, struct sync_work *work)
{
	int err = work->write_err ?: work->err;

	for (size_t i = 0; i < work->n_files; i++) {
		struct sync_file *file = &work->files[i];
		struct segment *segment = find_segment(spool, file->first_seq);

		if (segment)
			take_result(file, work->names_err, segment);
	}
	if (work->n_files)
		spool->dir->are_names_in_doubt = work->names_err;
	if (!work->names_err)
		spool->dir->is_new = false;
	spool->noted = work->noted;
	spool_find_durable(spool);
	note_sync(spool, err);
	give_back(spool, work);
	return err;
}

/* ---- Doing it ------------------------------------------------------------------ */

void spool_start_sync(struct spool *spool)
{
	struct sync_work *work;
	int err;

	spool_tend(spool);
	if (!spool->dir || worker_is_busy(spool->syncer))
		return;
	spool_find_lost(spool);
	err = make_work(spool, &work);
	if (!work) {
		note_sync(spool, err);
		return;
	}
	err = worker_start(spool->syncer, work);
	if (!err)
		return;
	note_sync(spool, err);
	give_back(spool, work);
}

int spool_sync(struct spool *spool)
{
	struct sync_work *work;
	int err;

	if (!spool->dir)
		return 0;
	worker_wait(spool->syncer, -1);
	spool_tend(spool);
	spool_find_lost(spool);
	err = make_work(spool, &work);
	if (!work) {
		note_sync(spool, err);
		return err;
	}
	sync_work_do(work);
	return finish_work(spool, work);
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
