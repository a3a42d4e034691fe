// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate_closer.h"

#include "base/clock_ms.h"
#include "base/util.h"
#include "base/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* Work: sync files, give them their names, remove the oldest. */
struct rotate_work {
	const struct rotate_names *names;
	struct rotate_file *files; /* failed ones stay, to be tried again */
	bool recovers; /* look for files that crashes have left; false once done */
	uint32_t keep; /* files; 0: all */
	bool is_sync;  /* sync records before @durable */
	int part_fd; /* the file that has the last of them; -1: @files have them */
	struct position durable;
	uint32_t epoch;

	/* The results. */
	int err;
	bool is_synced; /* records before @durable are on the disk */
	bool is_lost;	/* some records in part_fd may not be on the disk */
	uint64_t finished, removed; /* files */
};

/* ---- Names --------------------------------------------------------------------- */

/* NAME.part becomes NAME, or the next one that is free. */
static int give_final_name(const struct rotate_work *work, int dir_fd,
			   const char *name)
{
	rotate_name part, final;
	int err = -EEXIST;

	snprintf(part, sizeof(part), "%.*s" ROTATE_PART,
		 (int)(sizeof(part) - sizeof(ROTATE_PART)), name);
	snprintf(final, sizeof(final), "%s", name);
	for (unsigned int n = 1; err == -EEXIST && n < 100000; n++) {
		err = rotate_move(dir_fd, part, final);
		rotate_names_number(work->names, name, n, final);
	}
	return err;
}

static int finish_file(struct rotate_work *work, int dir_fd, int fd,
		       const char *name)
{
	int err = fdatasync(fd) ? -errno : give_final_name(work, dir_fd, name);

	work->finished += !err;
	return err;
}

/* ---- The directory ---------------------------------------------------------------- */

struct list {
	char **names;
	size_t n;
};

static void free_list(struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->names[i]);
	free(list->names);
}

static int add_name(struct list *list, const char *name)
{
	char **names = reallocarray(list->names, list->n + 1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	list->names = names;
	names[list->n] = strdup(name);
	if (!names[list->n])
		return -ENOMEM;
	list->n++;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Final names with @tail behind, in order. */
static int read_list(const struct rotate_work *work, const char *tail,
		     struct list *ret_list)
{
	struct list list = { 0 };
	const struct dirent *entry;
	DIR *dir = opendir(work->names->dir);
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir)))
		if (rotate_names_match(work->names, entry->d_name, tail))
			err = add_name(&list, entry->d_name);
	closedir(dir);
	if (err) {
		free_list(&list);
		return err;
	}
	if (list.n)
		qsort(list.names, list.n, sizeof(*list.names), compare_names);
	*ret_list = list;
	return 0;
}

/* ---- Files left by crashes --------------------------------------------------------- */

static bool is_own(const struct rotate_work *work, const char *name)
{
	for (const struct rotate_file *file = work->files; file; file = file->next)
		if (!strcmp(file->name, name))
			return true;
	return false;
}

static int recover_file(struct rotate_work *work, int dir_fd, char *part)
{
	cleanup_fd int fd = openat(dir_fd, part,
				   O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint64_t size;
	int err;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return 0; /* another process is about to finish it */
	err = rotate_cut(fd, &size);
	if (err)
		return err;
	if (!size)
		return unlinkat(dir_fd, part, 0) ? -errno : 0;
	part[strlen(part) - strlen(ROTATE_PART)] = '\0';
	return finish_file(work, dir_fd, fd, part);
}

static int recover_files(struct rotate_work *work, int dir_fd)
{
	struct list list = { 0 };
	int err = read_list(work, ROTATE_PART, &list);

	if (err)
		return err;
	for (size_t i = 0; i < list.n; i++) {
		char *part = list.names[i];
		size_t len = strlen(part) - strlen(ROTATE_PART);
		rotate_name name;

		snprintf(name, sizeof(name), "%.*s", (int)len, part);
		if (!is_own(work, name))
			err = recover_file(work, dir_fd, part) ?: err;
	}
	free_list(&list);
	work->recovers = err;
	return err;
}

/* ---- The work -------------------------------------------------------------------- */

/* Another process removed it: nothing is left to do. */
static int finish_files(struct rotate_work *work, int dir_fd)
{
	while (work->files) {
		struct rotate_file *file = work->files;
		int err = finish_file(work, dir_fd, file->fd, file->name);

		if (err && err != -ENOENT)
			return err;
		work->files = file->next;
		close(file->fd);
		free(file);
	}
	return 0;
}

static int remove_oldest(struct rotate_work *work, int dir_fd)
{
	struct list list = { 0 };
	int err;

	if (!work->keep)
		return 0;
	err = read_list(work, "", &list);
	if (err)
		return err;
	for (size_t i = 0; i + work->keep < list.n; i++) {
		if (unlinkat(dir_fd, list.names[i], 0) && errno != ENOENT)
			err = -errno;
		else
			work->removed++;
	}
	free_list(&list);
	return err;
}

/* After an error, the kernel regards data that it could not write as written. */
static int sync_part(struct rotate_work *work)
{
	if (work->part_fd < 0 || !fdatasync(work->part_fd))
		return 0;
	work->is_lost = true;
	return -errno;
}

static void rotate_work_do(void *arg)
{
	struct rotate_work *work = arg;
	cleanup_fd int dir_fd =
		open(work->names->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err;

	if (dir_fd < 0) {
		err = -errno;
		/* A directory that does not exist has no files left. */
		work->recovers &= err != -ENOENT;
		work->err = err == -ENOENT && !work->files ? 0 : err;
		return;
	}
	work->err = work->recovers ? recover_files(work, dir_fd) : 0;
	err = finish_files(work, dir_fd);
	err = sync_part(work) ?: err;
	if (fsync(dir_fd))
		err = -errno;
	work->is_synced = !err;
	work->err = err ?: work->err;
	work->err = remove_oldest(work, dir_fd) ?: work->err;
}

static void rotate_work_free(void *arg)
{
	struct rotate_work *work = arg;

	if (!work)
		return;
	for (struct rotate_file *file = work->files, *next; file; file = next) {
		next = file->next;
		close(file->fd);
		free(file);
	}
	close_fd(&work->part_fd);
	free(work);
}

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

/* Failed work is done again before the rest. */
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

/* Written records are in the files of this work, or were in earlier ones. */
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

void closer_written(struct file_closer *closer, struct position end)
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

void closer_start_over(struct file_closer *closer)
{
	closer->next->recovers = true;
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
