// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate.h"

#include "base/clock_ms.h"
#include "base/io.h"
#include "base/backoff.h"
#include "base/outage.h"
#include "rotate_disk.h"
#include "base/util.h"
#include "base/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	ROTATE_WAITING_MAX = 8, /* files to be finished, each with a descriptor */
	LOOK_MS = 1000, /* how often to look whether the file is still there */
	WAIT_MAX_MS = 60000, /* the clock may be set */
};

struct rotated {
	struct sink_host *host;
	struct rotate_options options;
	struct rotate_names names;
	const char *path; /* for people; the caller's */

	/* The file that is written. */
	int fd;		/* -1: it is not open */
	uint64_t size;	/* bytes in it */
	uint64_t whole; /* of that, up to the end of a piece */
	int64_t start_ms;
	bool has_records;
	uint64_t begun; /* files */
	struct rotate_final last;
	int64_t looked_ms;
	struct backoff retry;
	struct outage outage;

	/* Work that waits for the disk. Its files stay in their places while it runs. */
	struct worker *worker;
	struct rotate_work work;
	size_t n_files;
	struct rotate_file files[ROTATE_WAITING_MAX + 1];
	bool recovers; /* look for files that crashes have left */
	struct backoff work_retry;
	struct outage work_outage;
	uint64_t finished, removed; /* files */

	/* Records that are acknowledged once they are on the disk. */
	int64_t sync_due_ms; /* when to begin; 0: all are on the disk, or being synced */
	struct position written; /* behind the last record in a file */
	struct position durable; /* of that, what is being synced */
	bool is_syncing;
	bool is_lost; /* written records are not on the disk */
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

/* When to begin the next work, as soon as the last one is done; 0: there is none. */
static int64_t work_due_ms(const struct rotated *rotated)
{
	if (rotated->n_files || rotated->recovers)
		return max_i64(rotated->work_retry.due_ms, 1);
	if (!rotated->sync_due_ms)
		return 0;
	return max_i64(rotated->work_retry.due_ms, rotated->sync_due_ms);
}

/* Failed work stays at the front of the queue, and is retried first. */
static void process_work_result(struct rotated *rotated)
{
	struct rotate_work *done = &rotated->work;
	char name[PATH_MAX + 32];

	snprintf(name, sizeof(name), "%s (complete files)", rotated->path);
	outage_note(&rotated->work_outage, rotated->host->log, name, done->err);
	rotated->finished += done->finished;
	rotated->removed += done->removed;
	rotated->recovers |= done->recovers;
	rotated->n_files -= done->n_closed;
	memmove(rotated->files, rotated->files + done->n_closed,
		rotated->n_files * sizeof(*rotated->files));
	if (rotated->is_syncing && done->is_synced) {
		rotated->host->ops->ack(rotated->host, rotated->durable);
	} else if (rotated->is_syncing) {
		rotated->sync_due_ms = rotated->sync_due_ms ?: now_ms();
		rotated->is_lost |= done->is_lost;
	}
	rotated->is_syncing = false;
	if (done->err)
		backoff_wait(&rotated->work_retry, now_ms());
	else
		backoff_reset(&rotated->work_retry);
	close_fd(&done->part_fd);
}

/* Written records are in the files of this work, or were in earlier ones. */
static int prepare_work(struct rotated *rotated)
{
	struct rotate_work *work = &rotated->work;

	*work = (struct rotate_work){
		.names = &rotated->names,
		.files = rotated->files,
		.n_files = rotated->n_files,
		.keep = rotated->options.keep,
		.recovers = rotated->recovers,
		.part_fd = -1,
	};
	rotated->recovers = false;
	if (!rotated->sync_due_ms)
		return 0;
	rotated->sync_due_ms = 0;
	rotated->is_syncing = true;
	rotated->durable = rotated->written;
	if (rotated->fd >= 0)
		work->part_fd = fcntl(rotated->fd, F_DUPFD_CLOEXEC, 0);
	return rotated->fd >= 0 && work->part_fd < 0 ? -errno : 0;
}

/* Process results, and begin the next work. */
static void process_work(struct rotated *rotated)
{
	int64_t due_ms;
	int err;

	if (worker_take(rotated->worker))
		process_work_result(rotated);
	due_ms = work_due_ms(rotated);
	if (!due_ms || now_ms() < due_ms || worker_is_busy(rotated->worker))
		return;
	err = prepare_work(rotated);
	err = err ?: worker_start(rotated->worker, &rotated->work);
	if (!err)
		return;
	rotated->work.err = err;
	process_work_result(rotated);
}

/* Do the last work at the end, without a thread. */
static void finish_work(struct rotated *rotated)
{
	worker_wait(rotated->worker, -1);
	if (worker_take(rotated->worker))
		process_work_result(rotated);
	if (!work_due_ms(rotated))
		return;
	prepare_work(rotated);
	rotate_work_do(&rotated->work);
	process_work_result(rotated);
}

/* ---- The file that is written ------------------------------------------------------ */

static int until_rotation_ms(const struct rotated *rotated)
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
			     until_rotation_ms(rotated));

	if (worker_is_busy(rotated->worker)) /* its descriptor reports the end */
		return wait;
	return sooner_ms(wait, until_ms(work_due_ms(rotated)));
}

static int fail_write(struct rotated *rotated, int err)
{
	outage_note(&rotated->outage, rotated->host->log, rotated->path, err);
	backoff_wait(&rotated->retry, now_ms());
	return -EAGAIN;
}

/* Begin an empty one. */
static int begin_part(struct rotated *rotated)
{
	int err = rotate_part_open(&rotated->names,
				   rotated->options.mode ?: ROTATE_MODE,
				   &rotated->fd);

	if (err)
		return err;
	rotated->begun++;
	rotated->has_records = false;
	rotated->size = rotated->whole = 0;
	return 0;
}

/* The same, after a crash maybe. Unacknowledged records are written again. */
static int open_part(struct rotated *rotated)
{
	int err = begin_part(rotated);

	if (err)
		return err;
	rotated->recovers = true;
	rotated->sync_due_ms = 0;
	rotated->is_syncing = rotated->is_lost = false;
	return 0;
}

/* Complete the file, for a worker to give it its final name. */
static int end_part(struct rotated *rotated)
{
	struct rotate_final final = { .start = rotated->start_ms / 1000,
				      .suffix = rotated->options.suffix ?: "" };
	int err;

	/* The next number, also where a lower one has become free. */
	if (final.start == rotated->last.start)
		final.number = rotated->last.number + 1;
	err = rotate_part_rename(&rotated->names, &final);
	if (err)
		return err;
	rotated->last = final;
	rotated->files[rotated->n_files++] =
		(struct rotate_file){ TAKE_FD(rotated->fd), final };
	return 0;
}

static int rotate_now(struct rotated *rotated)
{
	int err = end_part(rotated);

	/* Without looking for leftovers: there was one moment for that. */
	err = err ?: begin_part(rotated);
	process_work(rotated);
	return err ? fail_write(rotated, err) : 0;
}

/* Between pieces; the disk is not too far behind. */
static bool may_rotate(const struct rotated *rotated)
{
	return rotated->fd >= 0 && rotated->has_records &&
	       rotated->size == rotated->whole &&
	       rotated->n_files < ROTATE_WAITING_MAX;
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
static bool has_lost_part(struct rotated *rotated)
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
	int err;

	process_work(rotated);
	if (!backoff_is_due(&rotated->retry))
		return PEER_AWAY;
	if (rotated->fd >= 0 && has_lost_part(rotated))
		close_fd(&rotated->fd);
	rotated->retry.due_ms = 0;
	if (rotated->fd >= 0) {
		bool has_failed = may_rotate(rotated) && is_old(rotated) &&
				  rotate_now(rotated);

		return has_failed ? PEER_AWAY : PEER_READY;
	}
	err = open_part(rotated);
	process_work(rotated);
	if (err)
		fail_write(rotated, err);
	return err ? PEER_AWAY : PEER_NEW;
}

int rotate_make_room(struct rotated *rotated, size_t len)
{
	uint64_t most = rotated->options.max_bytes;

	if (!most || rotated->size + len <= most)
		return 0;
	/* The end of the work that the disk is too slow for wakes the sink. */
	if (rotated->n_files == ROTATE_WAITING_MAX)
		return -EAGAIN;
	return may_rotate(rotated) ? rotate_now(rotated) : 0;
}

int rotate_write(struct rotated *rotated, const void *piece, size_t len)
{
	size_t from = rotated->size - rotated->whole, at = from;
	int err = io_write(rotated->fd, piece, len, &at);

	if (at > from && !rotated->has_records)
		rotated->start_ms = clock_ms(CLOCK_REALTIME);
	rotated->size = rotated->whole + at;
	if (err)
		return fail_write(rotated, err);
	rotated->whole = rotated->size;
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
	rotated->sync_due_ms =
		rotated->sync_due_ms ?:
			now_ms() + (int64_t)rotated->options.sync_ms;
	rotated->written = end;
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

static int set_up_rotation(struct rotated *rotated, const char *path)
{
	struct sink_host *host = rotated->host;
	int err = rotate_names_init(&rotated->names, path);

	err = err ?: io_make_parents(path);
	err = err ?: worker_new(rotate_work_do, NULL, &rotated->worker);
	err = err ?: host->ops->watch(host, worker_fd(rotated->worker), EPOLLIN);
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
	rotated->path = path;
	rotated->fd = -1;
	err = set_up_rotation(rotated, path);
	if (err) {
		log_error(host->log, "cannot write to %s: %s", path,
			  err == -EBUSY ?
				  "another process does" :
			  err == -EPERM ?
				  "its file that ends in .part belongs to another user" :
				  strerror(-err));
		rotate_close(rotated);
		return err;
	}
	process_work(rotated);
	host->outage = &rotated->outage;
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
		fail_write(rotated, err);
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
	for (size_t i = 0; i < rotated->n_files; i++)
		close(rotated->files[i].fd);
	free(rotated);
}
