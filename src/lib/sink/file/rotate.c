// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate.h"

#include "base/clock_ms.h"
#include "base/io.h"
#include "base/backoff.h"
#include "base/outage.h"
#include "rotate_part.h"
#include "base/util.h"
#include "base/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum {
	LOOK_MS = 1000, /* how often to look whether the file is still there */
	WAIT_MAX_MS = 60000, /* the clock may be set */
};

struct rotated {
	struct sink_host *host;
	struct rotate_options options;
	struct rotate_names names;
	char *path; /* for people */

	/* The file that is written. */
	int fd;		/* -1: it is not open */
	uint64_t size;	/* what was written */
	uint64_t whole; /* of that, up to the end of a piece */
	size_t left;	/* to be written of a piece */
	int64_t start_ms;
	bool has_records;
	uint64_t begun; /* files */
	struct rotate_last last;
	int64_t looked_ms;
	struct backoff retry;
	struct outage outage;

	/* What waits for the disk. */
	struct worker *worker;
	struct rotate_work next, doing;
	size_t n_doing; /* files in it, which is the worker's */
	struct backoff work_retry;
	struct outage work_outage;
	uint64_t finished, removed; /* files */

	/* Records that are acknowledged once they are on the disk. */
	bool has_unsynced, is_syncing;
	struct position written; /* behind the last record in a file */
	struct position durable; /* of that, what is being synced */
	int64_t sync_due_ms;	 /* when to begin */
	bool is_lost;		 /* written records are not on the disk */
};

/* ---- Options ------------------------------------------------------------------- */

bool rotate_parse(struct spec *spec, uint64_t least,
		  struct rotate_options *ret_options)
{
	*ret_options = (struct rotate_options){
		.max_bytes = spec_size(spec, "rotate.bytes", least, 1ULL << 50, 0),
		.interval_ms = spec_duration_ms(spec, "rotate.interval", 1000,
						366ULL * 24 * 60 * 60 * 1000, 0),
		.mode = spec_mode(spec, "mode", 0),
		.keep = (uint32_t)spec_number(spec, "rotate.keep", 0, 1000000, 0),
	};
	if (ret_options->max_bytes || ret_options->interval_ms)
		return true;
	if (ret_options->keep)
		spec_refuse(spec,
			    "rotate.keep needs rotate.bytes or rotate.interval");
	return false;
}

/* ---- What waits for the disk ----------------------------------------------------- */

static bool has_work(const struct rotated *rotated)
{
	return rotated->next.n_files || rotated->next.recovers;
}

static bool is_work_due(const struct rotated *rotated)
{
	return has_work(rotated) ||
	       (rotated->has_unsynced && now_ms() >= rotated->sync_due_ms);
}

/* Failed work is done again, before the rest. */
static void put_work_back(struct rotated *rotated)
{
	const struct rotate_work *done = &rotated->doing;
	struct rotate_work *next = &rotated->next;

	memmove(next->files + done->n_files, next->files,
		next->n_files * sizeof(*next->files));
	memcpy(next->files, done->files, done->n_files * sizeof(*next->files));
	next->n_files += done->n_files;
	next->recovers |= done->recovers;
	backoff_wait(&rotated->work_retry, now_ms());
}

static void take_sync(struct rotated *rotated)
{
	if (!rotated->is_syncing)
		return;
	rotated->is_syncing = false;
	if (rotated->doing.is_synced) {
		rotated->host->ops->ack(rotated->host, rotated->durable);
		return;
	}
	rotated->has_unsynced = true;
	rotated->is_lost |= rotated->doing.is_lost;
}

static void take_rotate_result(struct rotated *rotated)
{
	struct rotate_work *done = &rotated->doing;
	char name[PATH_MAX + 32];

	snprintf(name, sizeof(name), "%s (complete files)", rotated->path);
	outage_note(&rotated->work_outage, rotated->host->log, name, done->err);
	rotated->finished += done->finished;
	rotated->removed += done->removed;
	rotated->n_doing = 0;
	take_sync(rotated);
	if (done->err)
		put_work_back(rotated);
	else
		backoff_reset(&rotated->work_retry);
	close_fd(&done->part_fd);
}

/* Written records are in the files of this work, or were in earlier ones. */
static int begin_work(struct rotated *rotated)
{
	struct rotate_work *work = &rotated->doing;

	*work = rotated->next;
	rotated->n_doing = work->n_files;
	rotated->next.n_files = 0;
	rotated->next.recovers = false;
	if (!rotated->has_unsynced)
		return 0;
	rotated->has_unsynced = false;
	rotated->is_syncing = true;
	rotated->durable = rotated->written;
	if (rotated->fd >= 0)
		work->part_fd = fcntl(rotated->fd, F_DUPFD_CLOEXEC, 0);
	return rotated->fd >= 0 && work->part_fd < 0 ? -errno : 0;
}

/* Take results, and begin the next work. */
static void process_work(struct rotated *rotated)
{
	int err;

	if (worker_take(rotated->worker))
		take_rotate_result(rotated);
	if (!is_work_due(rotated) || worker_is_busy(rotated->worker) ||
	    !backoff_is_due(&rotated->work_retry))
		return;
	err = begin_work(rotated);
	err = err ?: worker_start(rotated->worker, &rotated->doing);
	if (!err)
		return;
	rotated->doing.err = err;
	take_rotate_result(rotated);
}

/* The last of it, at the end. */
static void finish_work(struct rotated *rotated)
{
	worker_wait(rotated->worker, -1);
	if (worker_take(rotated->worker))
		take_rotate_result(rotated);
	if (!has_work(rotated) && !rotated->has_unsynced)
		return;
	begin_work(rotated);
	rotate_work_do(&rotated->doing);
	take_rotate_result(rotated);
}

static int work_wait_ms(const struct rotated *rotated)
{
	if (worker_is_busy(rotated->worker)) /* its descriptor reports that */
		return -1;
	if (!has_work(rotated) && !rotated->has_unsynced)
		return -1;
	return left_ms(max_i64(has_work(rotated) ? 0 : rotated->sync_due_ms,
			       rotated->work_retry.due_ms));
}

/* ---- The file that is written ------------------------------------------------------ */

static int until_rotation(const struct rotated *rotated)
{
	int64_t interval = (int64_t)rotated->options.interval_ms;

	if (!interval || !rotated->has_records)
		return -1;
	return (int)min_u64(interval - clock_ms(CLOCK_REALTIME) % interval,
			    WAIT_MAX_MS);
}

int rotate_wait_ms(const struct rotated *rotated)
{
	int wait = sooner_ms(backoff_left_ms(&rotated->retry),
			     work_wait_ms(rotated));

	return sooner_ms(wait, until_rotation(rotated));
}

static int fail_write(struct rotated *rotated, int err)
{
	outage_note(&rotated->outage, rotated->host->log, rotated->path, err);
	backoff_wait(&rotated->retry, now_ms());
	return -EAGAIN;
}

/* It is empty. */
static int begin_part(struct rotated *rotated)
{
	int err = rotate_part_open(&rotated->names,
				   rotated->options.mode ?: ROTATE_MODE,
				   &rotated->fd);

	if (err)
		return err;
	rotated->begun++;
	rotated->has_records = false;
	rotated->size = rotated->whole = rotated->left = 0;
	return 0;
}

/* No part is open, and a crash may have left files. Unacknowledged records come again. */
static int open_part(struct rotated *rotated)
{
	int err = begin_part(rotated);

	if (err)
		return err;
	rotated->next.recovers = true;
	rotated->has_unsynced = rotated->is_syncing = false;
	rotated->is_lost = false;
	return 0;
}

/* It gets its final name; another one is not made yet. */
static int end_part(struct rotated *rotated)
{
	struct rotate_work *work = &rotated->next;
	int err = rotate_part_rename(&rotated->names, rotated->start_ms / 1000,
				     rotated->options.suffix ?: "",
				     &rotated->last,
				     work->files[work->n_files].name);

	if (!err)
		work->files[work->n_files++].fd = TAKE_FD(rotated->fd);
	return err;
}

static int rotate_now(struct rotated *rotated)
{
	int err = end_part(rotated);

	/* Without looking for leftovers: there was one moment for that. */
	err = err ?: begin_part(rotated);
	process_work(rotated);
	return err;
}

/* Between pieces; the disk is not too far behind. */
static bool may_rotate(const struct rotated *rotated)
{
	return rotated->fd >= 0 && rotated->has_records && !rotated->left &&
	       rotated->next.n_files + rotated->n_doing < ROTATE_WAITING_MAX;
}

/* Its first record is of an interval that is over. */
static bool is_old(const struct rotated *rotated)
{
	int64_t interval = (int64_t)rotated->options.interval_ms;

	return interval && clock_ms(CLOCK_REALTIME) / interval !=
				   rotated->start_ms / interval;
}

/* ---- Use ----------------------------------------------------------------------- */

/* Another process may have removed it, or the directory, or mounted another one there. */
static bool is_lost(struct rotated *rotated)
{
	int64_t now = now_ms();

	if (rotated->is_lost)
		return true;
	if (now - rotated->looked_ms < LOOK_MS && !rotated->retry.due_ms)
		return false;
	rotated->looked_ms = now;
	return !rotate_part_is_there(rotated->fd, &rotated->names);
}

enum peer_state rotate_prepare(struct rotated *rotated)
{
	enum peer_state state = PEER_READY;
	int err = 0;

	process_work(rotated);
	if (!backoff_is_due(&rotated->retry))
		return PEER_AWAY;
	if (rotated->fd >= 0 && is_lost(rotated))
		close_fd(&rotated->fd);
	rotated->retry.due_ms = 0;
	if (rotated->fd < 0) {
		err = open_part(rotated);
		state = PEER_NEW;
		process_work(rotated);
	} else if (may_rotate(rotated) && is_old(rotated)) {
		err = rotate_now(rotated);
	}
	if (!err)
		return state;
	fail_write(rotated, err);
	return PEER_AWAY;
}

int rotate_make_room(struct rotated *rotated, size_t len)
{
	uint64_t most = rotated->options.max_bytes;
	int err;

	if (!most || rotated->size + len <= most || !may_rotate(rotated))
		return 0;
	err = rotate_now(rotated);
	return err ? fail_write(rotated, err) : 0;
}

/* As much as is taken. */
static int write_left(struct rotated *rotated, const char *piece, size_t len)
{
	size_t from = len - rotated->left, at = from;
	int err = io_write(rotated->fd, piece, len, &at);

	if (at > from && !rotated->has_records)
		rotated->start_ms = clock_ms(CLOCK_REALTIME);
	rotated->size += at - from;
	rotated->left = len - at;
	if (!err)
		rotated->whole = rotated->size;
	return err;
}

int rotate_write(struct rotated *rotated, const void *piece, size_t len)
{
	int err;

	rotated->left = rotated->left ?: len;
	err = write_left(rotated, piece, len);
	if (err)
		return fail_write(rotated, err);
	outage_note(&rotated->outage, rotated->host->log, rotated->path, 0);
	backoff_reset(&rotated->retry);
	return 0;
}

void rotate_written(struct rotated *rotated, struct position end)
{
	rotated->has_records = true;
	if (!rotated->options.sync_ms) {
		rotated->host->ops->ack(rotated->host, end);
		return;
	}
	if (!rotated->has_unsynced)
		rotated->sync_due_ms =
			now_ms() + (int64_t)rotated->options.sync_ms;
	rotated->has_unsynced = true;
	rotated->written = end;
}

const struct outage *rotate_outage(const struct rotated *rotated)
{
	return &rotated->outage;
}

uint64_t rotate_begun(const struct rotated *rotated)
{
	return rotated->begun;
}

void rotate_counters(const struct rotated *rotated, sink_counter_fn *take,
		     void *ctx)
{
	take(ctx, "files", rotated->finished);
	take(ctx, "files_removed", rotated->removed);
}

/* ---- Life ---------------------------------------------------------------------- */

/* It is taken before the worker is freed. */
static void forget_work(void *work)
{
	(void)work;
}

static int set_up(struct rotated *rotated, const char *path)
{
	int err = rotate_names_init(&rotated->names, path);

	err = err ?: io_make_parents(path);
	if (err)
		return err;
	rotated->path = strdup(path);
	if (!rotated->path)
		return -ENOMEM;
	rotated->next = (struct rotate_work){ .names = &rotated->names,
					      .keep = rotated->options.keep,
					      .part_fd = -1 };
	err = worker_new(rotate_work_do, forget_work, &rotated->worker);
	if (!err)
		err = rotated->host->ops->watch(
			rotated->host, worker_fd(rotated->worker), EPOLLIN);
	return err ?: open_part(rotated);
}

int rotate_open(const char *path, const struct rotate_options *options,
		struct sink_host *host, struct rotated **ret_rotated)
{
	struct rotated *rotated = calloc(1, sizeof(*rotated));
	int err;

	if (!rotated)
		return -ENOMEM;
	rotated->host = host;
	rotated->options = *options;
	rotated->fd = -1;
	err = set_up(rotated, path);
	if (err) {
		log_error(host->log, "cannot write to %s: %s", path,
			  err == -EBUSY ? "another process does" :
					  strerror(-err));
		rotate_close(rotated);
		return err;
	}
	process_work(rotated);
	*ret_rotated = rotated;
	return 0;
}

/* Finish the part. Records in a torn piece at its end were not acknowledged. */
static void finish_part(struct rotated *rotated)
{
	int err = 0;

	if (rotated->fd < 0)
		return;
	if (rotated->size > rotated->whole &&
	    ftruncate(rotated->fd, (off_t)rotated->whole))
		err = -errno; /* the next start cuts it */
	else if (rotated->has_records)
		err = end_part(rotated);
	else
		rotate_part_remove(rotated->fd, &rotated->names);
	if (err)
		outage_note(&rotated->outage, rotated->host->log, rotated->path,
			    err);
	close_fd(&rotated->fd);
}

void rotate_close(struct rotated *rotated)
{
	if (!rotated)
		return;
	finish_part(rotated);
	if (rotated->worker) {
		finish_work(rotated);
		rotated->host->ops->watch(rotated->host,
					  worker_fd(rotated->worker), 0);
	}
	worker_free(rotated->worker);
	for (size_t i = 0; i < rotated->next.n_files; i++)
		close(rotated->next.files[i].fd);
	free(rotated->path);
	free(rotated);
}
