// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotated.h"

#include "detached.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

enum { SAME_SECOND_MAX = 1000 };

static const char suffix[] = ROTATED_PART;

/* ---- Threads ------------------------------------------------------------------- */

void rotated_init(struct rotated *file)
{
	*file = (struct rotated){ .fd = -1 };
	pthread_mutex_init(&file->jobs.lock, NULL);
	pthread_cond_init(&file->jobs.is_done, NULL);
}

void rotated_run(struct rotated_jobs *jobs, void *(*run)(void *arg), void *arg)
{
	pthread_mutex_lock(&jobs->lock);
	jobs->running++;
	pthread_mutex_unlock(&jobs->lock);
	if (detached_run(run, arg, false))
		run(arg);
}

void rotated_done(struct rotated_jobs *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	jobs->running--;
	pthread_cond_signal(&jobs->is_done);
	pthread_mutex_unlock(&jobs->lock);
}

void rotated_close(struct rotated *file)
{
	struct rotated_jobs *jobs = &file->jobs;

	pthread_mutex_lock(&jobs->lock);
	while (jobs->running)
		pthread_cond_wait(&jobs->is_done, &jobs->lock);
	pthread_mutex_unlock(&jobs->lock);
	pthread_cond_destroy(&jobs->is_done);
	pthread_mutex_destroy(&jobs->lock);
}

/* ---- Names --------------------------------------------------------------------- */

int rotated_split(const char *path, const char **ret_extension)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *dot = strrchr(base, '.');

	*ret_extension = dot && dot != base ? dot : base + strlen(base);
	return (int)(*ret_extension - path);
}

/* DIR/STEM-20261231T235959Z.EXT, and for those of the same second _001 before .EXT. */
static int make_name(struct rotated *file, const char *path, time_t now, int n)
{
	char text[32], number[16] = "";
	const char *extension;
	struct tm utc;
	int len, stem_len = rotated_split(path, &extension);

	gmtime_r(&now, &utc);
	strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &utc);
	if (n)
		snprintf(number, sizeof(number), "_%03d", n);
	len = snprintf(file->name, sizeof(file->name), "%.*s-%s%s%s", stem_len,
		       path, text, number, extension);
	return len + (int)sizeof(suffix) < (int)sizeof(file->name) ?
		       0 :
		       -ENAMETOOLONG;
}

static void part_of(const struct rotated *file, char part[PATH_MAX])
{
	size_t len = strnlen(file->name, PATH_MAX - sizeof(suffix));

	memcpy(part, file->name, len);
	memcpy(part + len, suffix, sizeof(suffix));
}

/* ---- Files --------------------------------------------------------------------- */

/* Locked, so that nobody else takes it for what a crash has left. */
static int open_part(struct rotated *file, const char *path)
{
	time_t now = time(NULL);
	char part[PATH_MAX];
	int err;

	for (int n = 0; n < SAME_SECOND_MAX; n++) {
		err = make_name(file, path, now, n);
		if (err)
			return err;
		if (!access(file->name, F_OK))
			continue;
		part_of(file, part);
		file->fd =
			open(part,
			     O_WRONLY | O_CREAT | O_EXCL | O_NOCTTY | O_CLOEXEC,
			     0644);
		if (file->fd < 0 && errno != EEXIST)
			return -errno;
		if (file->fd < 0)
			continue;
		if (access(file->name, F_OK))
			return flock(file->fd, LOCK_EX | LOCK_NB) ? -errno : 0;
		/* It was given away between the one look and the other. */
		unlink(part);
		close_fd(&file->fd);
	}
	return -EEXIST;
}

int rotated_open(struct rotated *file, const char *path, bool rotate)
{
	file->has_part = rotate;
	if (rotate)
		return open_part(file, path);
	file->fd = open(path,
			O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY |
				O_CLOEXEC,
			0644);
	return file->fd < 0 ? -errno : 0;
}

static void sync_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX] = ".";
	cleanup_fd int fd = -1;

	if (slash)
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path) + 1, path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		fsync(fd);
}

void rotated_complete(int fd, const char *part, const char *name)
{
	/* What is not on the disk stays .part: the next start tries again. */
	if (!fdatasync(fd) && !rename(part, name))
		sync_directory(part);
	close(fd);
}

struct finished {
	struct rotated_jobs *jobs;
	int fd;
	char part[PATH_MAX], name[PATH_MAX];
};

static void *complete(void *arg)
{
	struct finished *finished = arg;
	struct rotated_jobs *jobs = finished->jobs;

	rotated_complete(finished->fd, finished->part, finished->name);
	free(finished);
	rotated_done(jobs);
	return NULL;
}

static void hand_over(struct rotated *file)
{
	struct finished *finished = malloc(sizeof(*finished));

	if (!finished) {
		close_fd(&file->fd); /* it stays .part */
		return;
	}
	finished->jobs = &file->jobs;
	finished->fd = TAKE_FD(file->fd);
	part_of(file, finished->part);
	memcpy(finished->name, file->name, sizeof(finished->name));
	rotated_run(&file->jobs, complete, finished);
}

void rotated_finish(struct rotated *file, bool keep)
{
	char part[PATH_MAX];

	if (file->fd < 0)
		return;
	if (file->has_part && keep) {
		hand_over(file);
		return;
	}
	if (file->has_part) {
		part_of(file, part);
		unlink(part);
	}
	close_fd(&file->fd);
}
