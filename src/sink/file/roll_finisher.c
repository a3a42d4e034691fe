// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "roll_finisher.h"

#include "base/clock_ms.h"
#include "base/util.h"
#include "base/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

static struct roll_work *make_work(const struct finisher *finisher)
{
	struct roll_work *work = calloc(1, sizeof(*work));

	if (!work)
		return NULL;
	work->names = finisher->names;
	work->keep = finisher->keep;
	work->part_fd = -1;
	return work;
}

/* ---- Results ------------------------------------------------------------------- */

/* What could not be done is done again, before the rest. */
static void keep_for_later(struct finisher *finisher, struct roll_work *done)
{
	struct roll_work *next = finisher->next;
	struct roll_file **end = &done->files;

	while (*end)
		end = &(*end)->next;
	*end = TAKE_PTR(next->files);
	next->files = TAKE_PTR(done->files);
	next->tidy |= done->tidy;
	finisher->n_waiting = 0;
	for (struct roll_file *file = next->files; file; file = file->next)
		finisher->n_waiting++;
	backoff_wait(&finisher->retry, now_ms());
}

static void take_sync(struct finisher *finisher, const struct roll_work *work)
{
	if (!work->is_sync || work->epoch != finisher->epoch)
		return;
	if (work->is_synced) {
		finisher->host->ops->ack(finisher->host, work->durable);
		return;
	}
	finisher->has_unsynced = true;
	finisher->is_lost |= work->is_lost;
}

static void take_result(struct finisher *finisher, struct roll_work *work)
{
	outage_note(&finisher->outage, finisher->host->log, finisher->path,
		    work->err);
	finisher->finished += work->finished;
	finisher->removed += work->removed;
	take_sync(finisher, work);
	if (work->err)
		keep_for_later(finisher, work);
	else
		backoff_reset(&finisher->retry);
	roll_work_free(work);
}

/* ---- Work ---------------------------------------------------------------------- */

static bool has_work(const struct finisher *finisher)
{
	return finisher->next->files || finisher->next->tidy;
}

static bool is_due(const struct finisher *finisher, int64_t now)
{
	return has_work(finisher) ||
	       (finisher->has_unsynced && now >= finisher->due_ms);
}

/* What was written is in the files of this work, or was in earlier ones. */
static int add_sync(struct finisher *finisher, int part_fd)
{
	struct roll_work *work = finisher->next;

	if (!finisher->has_unsynced)
		return 0;
	if (part_fd >= 0) {
		work->part_fd = fcntl(part_fd, F_DUPFD_CLOEXEC, 0);
		if (work->part_fd < 0)
			return -errno;
	}
	work->is_sync = true;
	work->durable = finisher->written;
	work->epoch = finisher->epoch;
	finisher->has_unsynced = false;
	return 0;
}

static int start_work(struct finisher *finisher, int part_fd)
{
	struct roll_work *after = make_work(finisher);
	int err = after ? add_sync(finisher, part_fd) : -ENOMEM;

	err = err ?: worker_start(finisher->worker, finisher->next);
	if (err) {
		finisher->has_unsynced |= finisher->next->is_sync;
		finisher->next->is_sync = false;
		close_fd(&finisher->next->part_fd);
		roll_work_free(after);
		return err;
	}
	finisher->next = after;
	finisher->n_waiting = 0;
	return 0;
}

void finisher_tend(struct finisher *finisher, int part_fd)
{
	struct roll_work *work = worker_take(finisher->worker);
	int64_t now = now_ms();
	int err;

	if (work)
		take_result(finisher, work);
	if (!is_due(finisher, now) || worker_is_busy(finisher->worker) ||
	    !backoff_is_due(&finisher->retry))
		return;
	err = start_work(finisher, part_fd);
	if (!err)
		return;
	backoff_wait(&finisher->retry, now);
	outage_note(&finisher->outage, finisher->host->log, finisher->path, err);
}

int finisher_wait_ms(const struct finisher *finisher)
{
	int64_t at = has_work(finisher) ? 0 : finisher->due_ms;

	if (worker_is_busy(finisher->worker)) /* its descriptor reports that */
		return -1;
	if (!has_work(finisher) && !finisher->has_unsynced)
		return -1;
	return left_ms(max_i64(at, finisher->retry.due_ms));
}

void finisher_add(struct finisher *finisher, struct roll_file *file)
{
	struct roll_file **end = &finisher->next->files;

	while (*end)
		end = &(*end)->next;
	*end = file;
	finisher->n_waiting++;
}

void finisher_written(struct finisher *finisher, struct mark end)
{
	if (!finisher->sync_ms) {
		finisher->host->ops->ack(finisher->host, end);
		return;
	}
	if (!finisher->has_unsynced)
		finisher->due_ms = now_ms() + finisher->sync_ms;
	finisher->has_unsynced = true;
	finisher->written = end;
}

void finisher_forget(struct finisher *finisher)
{
	finisher->has_unsynced = false;
	finisher->is_lost = false;
	finisher->epoch++;
}

/* ---- Life ---------------------------------------------------------------------- */

int finisher_open(struct finisher *finisher, struct sink_host *host,
		  const struct roll_names *names, const char *path,
		  uint32_t keep, int64_t sync_ms)
{
	int err;

	*finisher = (struct finisher){
		.host = host, .names = names, .keep = keep, .sync_ms = sync_ms
	};
	finisher->next = make_work(finisher);
	if (!finisher->next ||
	    asprintf(&finisher->path, "%s (complete files)", path) < 0)
		return -ENOMEM;
	err = worker_new(roll_work_do, roll_work_free, &finisher->worker);
	if (err)
		return err;
	return host->ops->watch(host, worker_fd(finisher->worker), EPOLLIN);
}

static void finish_work(struct finisher *finisher)
{
	struct roll_work *work;

	worker_wait(finisher->worker, -1);
	work = worker_take(finisher->worker);
	if (work)
		take_result(finisher, work);
	if (!has_work(finisher) && !finisher->has_unsynced)
		return;
	add_sync(finisher, -1);
	roll_work_do(finisher->next);
	take_sync(finisher, finisher->next);
	outage_note(&finisher->outage, finisher->host->log, finisher->path,
		    finisher->next->err);
}

void finisher_close(struct finisher *finisher)
{
	if (finisher->worker) {
		finish_work(finisher);
		finisher->host->ops->watch(finisher->host,
					   worker_fd(finisher->worker), 0);
	}
	worker_free(finisher->worker);
	roll_work_free(finisher->next);
	free(finisher->path);
}
