// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * What makes a spool durable, in two halves: pieces of work that have to wait for the
 * disk, which a thread does, and what the spool makes of their results.
 *
 * A sync that fails is reported once, and after that the kernel takes what it was to
 * save for saved. So its result holds for what was asked of it, never for later:
 * what failed is in doubt, and is done again before another sync can vouch for it.
 */
#include "spool.h"

#include "base/util.h"
#include "base/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Work of the thread ------------------------------------------------------ */

/* A segment's file. */
struct sync_file {
	int fd;
	int to_fd; /* a new file to be made of it; -1: none */
	uint64_t first_seq;
	uint64_t from, to;   /* of its records, what is to become durable */
	struct position end; /* behind these */
	bool is_in_doubt;
	bool is_named;
	bool is_damaged;
	int err; /* the result */
};

struct sync_work {
	int dir_fd;
	struct sync_file *files;
	size_t n_files;
	bool are_names_in_doubt;
	bool is_dir_new;
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

void spool_find_durable(struct spool *spool)
{
	struct position durable = spool->oldest ? spool->oldest->first :
						  spool->tail;

	for (const struct segment *segment = spool->oldest;
	     segment && segment->is_named; segment = segment->next) {
		durable = segment->durable;
		if (segment->synced < segment->size)
			break;
	}
	if (position_is_before(spool->durable, durable))
		spool->durable = durable;
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
 * The durable position is noted a segment at a time, and at the end. The next process writes
 * everything behind it again, because it does not know of later syncs.
 */
static bool is_progress_due(const struct spool *spool)
{
	struct position durable = spool->noted.durable;

	return spool->acked.seq != spool->noted.acked.seq ||
	       (spool->newest &&
		position_is_before(durable, spool->newest->first)) ||
	       (spool->is_closing && position_is_before(durable, spool->tail));
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

static void take_sync_result(struct sync_file *file, int names_err,
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
	if (work->n_files)
		spool->dir->are_names_in_doubt = work->names_err;
	if (!work->names_err)
		spool->dir->is_new = false;
	spool->noted = work->noted;
	spool_find_durable(spool);
	spool_note_sync(spool, err);
	give_back(spool, work);
	return err;
}

/* ---- Files that are gone ----------------------------------------------------- */

/*
 * A spool's files that another process removed, with their directory or without it: what is
 * open can still be read, so it is written again.
 */

static bool has_name(const struct segment *segment)
{
	struct stat info;

	return !fstat(segment->fd, &info) && info.st_nlink;
}

/* Nothing is added to it: what it has is copied as it is now. */
static void lose_segment(struct segment *segment)
{
	segment_write_out(segment);
	segment->is_lost = true;
	segment->is_closed = true;
	segment->is_named = false;
	segment->synced = 0;
	segment->durable = segment->first;
}

/* How many records that wait are in them. */
static uint64_t lose_segments(struct spool *spool, bool is_dir_lost)
{
	uint64_t records = 0;

	for (struct segment *segment = spool->oldest; segment;
	     segment = segment->next) {
		if (segment->fd < 0 || segment->is_lost ||
		    (!is_dir_lost && has_name(segment)))
			continue;
		lose_segment(segment);
		records += position_sub(segment->end, segment->first).seq;
	}
	return records;
}

static void log_lost_files(const struct spool *spool, uint64_t records, int err)
{
	if (err)
		log_warning(spool->options.log,
			    "spool %s: the directory was removed and cannot be created again: %s; trying again",
			    spool_name(spool), strerror(-err));
	else
		log_warning(spool->options.log,
			    "spool %s: files in it were removed; %llu records are written again",
			    spool_name(spool), (unsigned long long)records);
}

static void find_lost(struct spool *spool)
{
	struct spool_dir *dir = spool->dir;
	bool is_dir_lost = !spool_dir_is_there(dir, spool->path);
	int err = is_dir_lost ? spool_dir_renew(dir, spool->path) : 0;
	uint64_t records = lose_segments(spool, is_dir_lost);

	if (records || (is_dir_lost && !(err && dir->is_gone)))
		log_lost_files(spool, records, err);
	dir->is_gone = err;
	if (!records && !is_dir_lost)
		return;
	spool->noted = (struct spool_progress){ 0 };
	spool->durable = spool->acked;
	spool_find_durable(spool);
}

/* ---- Doing it ------------------------------------------------------------------ */

void spool_start_sync(struct spool *spool)
{
	struct sync_work *work;
	int err;

	spool_finish_sync(spool);
	if (!spool->dir || worker_is_busy(spool->syncer))
		return;
	find_lost(spool);
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
	find_lost(spool);
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
