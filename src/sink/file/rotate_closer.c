// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate_closer.h"

#include "base/clock_ms.h"
#include "base/util.h"
#include "base/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

static struct rotate_work *make_work(const struct file_closer *closer)
{
	struct rotate_work *work = calloc(1, sizeof(*work));

	if (!work)
		return NULL;
	work->names = closer->names;
	work->keep = closer->keep;
	work->part_fd = -1;
	return work;
}

/* ---- Results ------------------------------------------------------------------- */

/* What could not be done is done again, before the rest. */
static void keep_for_later(struct file_closer *closer, struct rotate_work *done)
{
	struct rotate_work *next = closer->next;
	struct rotate_file **end = &done->files;

	while (*end)
		end = &(*end)->next;
	*end = TAKE_PTR(next->files);
	next->files = TAKE_PTR(done->files);
	next->recovers |= done->recovers;
	closer->n_waiting = 0;
	for (struct rotate_file *file = next->files; file; file = file->next)
		closer->n_waiting++;
	backoff_wait(&closer->retry, now_ms());
}

static void take_sync(struct file_closer *closer, const struct rotate_work *work)
{
	if (!work->is_sync || work->epoch != closer->epoch)
		return;
	if (work->is_synced) {
		closer->host->ops->ack(closer->host, work->durable);
		return;
	}
	closer->has_unsynced = true;
	closer->is_lost |= work->is_lost;
}

static void take_result(struct file_closer *closer, struct rotate_work *work)
{
	outage_note(&closer->outage, closer->host->log, closer->path, work->err);
	closer->finished += work->finished;
	closer->removed += work->removed;
	take_sync(closer, work);
	if (work->err)
		keep_for_later(closer, work);
	else
		backoff_reset(&closer->retry);
	rotate_work_free(work);
}

/* ---- Work ---------------------------------------------------------------------- */

static bool has_work(const struct file_closer *closer)
{
	return closer->next->files || closer->next->recovers;
}

static bool is_due(const struct file_closer *closer, int64_t now)
{
	return has_work(closer) ||
	       (closer->has_unsynced && now >= closer->due_ms);
}

/* What was written is in the files of this work, or was in earlier ones. */
static int add_sync(struct file_closer *closer, int part_fd)
{
	struct rotate_work *work = closer->next;

	if (!closer->has_unsynced)
		return 0;
	if (part_fd >= 0) {
		work->part_fd = fcntl(part_fd, F_DUPFD_CLOEXEC, 0);
		if (work->part_fd < 0)
			return -errno;
	}
	work->is_sync = true;
	work->durable = closer->written;
	work->epoch = closer->epoch;
	closer->has_unsynced = false;
	return 0;
}

static int start_work(struct file_closer *closer, int part_fd)
{
	struct rotate_work *after = make_work(closer);
	int err = after ? add_sync(closer, part_fd) : -ENOMEM;

	err = err ?: worker_start(closer->worker, closer->next);
	if (err) {
		closer->has_unsynced |= closer->next->is_sync;
		closer->next->is_sync = false;
		close_fd(&closer->next->part_fd);
		rotate_work_free(after);
		return err;
	}
	closer->next = after;
	closer->n_waiting = 0;
	return 0;
}

void closer_process(struct file_closer *closer, int part_fd)
{
	struct rotate_work *work = worker_take(closer->worker);
	int64_t now = now_ms();
	int err;

	if (work)
		take_result(closer, work);
	if (!is_due(closer, now) || worker_is_busy(closer->worker) ||
	    !backoff_is_due(&closer->retry))
		return;
	err = start_work(closer, part_fd);
	if (!err)
		return;
	backoff_wait(&closer->retry, now);
	outage_note(&closer->outage, closer->host->log, closer->path, err);
}

int closer_wait_ms(const struct file_closer *closer)
{
	int64_t at = has_work(closer) ? 0 : closer->due_ms;

	if (worker_is_busy(closer->worker)) /* its descriptor reports that */
		return -1;
	if (!has_work(closer) && !closer->has_unsynced)
		return -1;
	return left_ms(max_i64(at, closer->retry.due_ms));
}

void closer_add(struct file_closer *closer, struct rotate_file *file)
{
	struct rotate_file **end = &closer->next->files;

	while (*end)
		end = &(*end)->next;
	*end = file;
	closer->n_waiting++;
}

void closer_written(struct file_closer *closer, struct mark end)
{
	if (!closer->sync_ms) {
		closer->host->ops->ack(closer->host, end);
		return;
	}
	if (!closer->has_unsynced)
		closer->due_ms = now_ms() + closer->sync_ms;
	closer->has_unsynced = true;
	closer->written = end;
}

void closer_forget(struct file_closer *closer)
{
	closer->has_unsynced = false;
	closer->is_lost = false;
	closer->epoch++;
}

/* ---- Life ---------------------------------------------------------------------- */

int closer_open(struct file_closer *closer, struct sink_host *host,
		const struct rotate_names *names, const char *path,
		uint32_t keep, int64_t sync_ms)
{
	int err;

	*closer = (struct file_closer){
		.host = host, .names = names, .keep = keep, .sync_ms = sync_ms
	};
	closer->next = make_work(closer);
	if (!closer->next ||
	    asprintf(&closer->path, "%s (complete files)", path) < 0)
		return -ENOMEM;
	err = worker_new(rotate_work_do, rotate_work_free, &closer->worker);
	if (err)
		return err;
	return host->ops->watch(host, worker_fd(closer->worker), EPOLLIN);
}

static void finish_work(struct file_closer *closer)
{
	struct rotate_work *work;

	worker_wait(closer->worker, -1);
	work = worker_take(closer->worker);
	if (work)
		take_result(closer, work);
	if (!has_work(closer) && !closer->has_unsynced)
		return;
	add_sync(closer, -1);
	rotate_work_do(closer->next);
	take_sync(closer, closer->next);
	outage_note(&closer->outage, closer->host->log, closer->path,
		    closer->next->err);
}

void closer_close(struct file_closer *closer)
{
	if (closer->worker) {
		finish_work(closer);
		closer->host->ops->watch(closer->host,
					 worker_fd(closer->worker), 0);
	}
	worker_free(closer->worker);
	rotate_work_free(closer->next);
	free(closer->path);
}
