// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rotate.h"

#include "base/clock_ms.h"
#include "base/io.h"
#include "base/outage.h"
#include "base/util.h"
#include "sink/pack/packer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	WAIT_MAX_MS = 60000, /* the clock may be set */
	STAMP_SIZE = sizeof("-20261121T164500Z"),
	LONGEST_TAIL = STAMP_SIZE + sizeof("_99999.zst"),
};

struct rotated {
	struct sink_host *host;
	struct rotate_options options;
	const char *path;	/* the caller's */
	const char *name;	/* in it */
	const char *dot;	/* start of the name's extension */
	char dir[PATH_MAX / 2]; /* absolute, with a slash at its end */
	char part[PATH_MAX];
	int fd;	       /* descriptor of the current file; -1: it is not open */
	uint64_t size; /* bytes in it */
	uint64_t whole; /* bytes of `size` up to the end of the last whole piece */
	int64_t start_ms; /* when its first piece was written */
	bool is_new, has_records;
	time_t last_start;	  /* start of the last complete file */
	unsigned int next_number; /* for another of the same second */
	uint64_t finished;	  /* files */
	struct backoff retry;
	struct outage outage, removal_outage;
};

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

/* ---- Complete files ------------------------------------------------------------ */

static int set_names(struct rotated *rotated)
{
	const char *path = rotated->path, *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	char cwd[PATH_MAX / 2] = "";
	int len;

	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EISDIR;
	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	len = snprintf(rotated->dir, sizeof(rotated->dir), "%s%s%.*s", cwd,
		       *path == '/' ? "" : "/", (int)(name - path), path);
	if (len >= (int)sizeof(rotated->dir) ||
	    strlen(name) + LONGEST_TAIL > NAME_MAX)
		return -ENAMETOOLONG;
	rotated->name = name;
	rotated->dot = dot && dot != name ? dot : name + strlen(name);
	stpcpy(stpcpy(stpcpy(rotated->part, rotated->dir), name), ".part");
	return 0;
}

static void format_path(const struct rotated *rotated, time_t start,
			unsigned int number, const char *suffix, char *to)
{
	size_t stem = (size_t)(rotated->dot - rotated->name);
	struct tm tm;

	to = mempcpy(stpcpy(to, rotated->dir), rotated->name, stem);
	to += strftime(to, STAMP_SIZE, "-%Y%m%dT%H%M%SZ", gmtime_r(&start, &tm));
	if (number)
		to += sprintf(to, "_%03u", number);
	stpcpy(stpcpy(to, rotated->dot), suffix);
}

/* @return whether @name is one that format_path() makes */
static bool is_final(const struct rotated *rotated, const char *name)
{
	size_t stem = (size_t)(rotated->dot - rotated->name);
	int date = 0, number = 0;

	if (strncmp(name, rotated->name, stem))
		return false;
	sscanf(name + stem, "-%*8[0-9]T%*6[0-9]Z%n", &date);
	if (date != STAMP_SIZE - 1)
		return false;
	name += stem + (size_t)date;
	sscanf(name, "_%*5[0-9]%n", &number);
	name += number;
	if (strncmp(name, rotated->dot, strlen(rotated->dot)))
		return false;
	name += strlen(rotated->dot);
	return !*name || !strcmp(name, ".gz") || !strcmp(name, ".zst");
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Remove complete files except the newest ones, as many as are kept. */
static void remove_oldest(struct rotated *rotated)
{
	struct dirent **found = NULL;
	int n = scandir(rotated->dir, &found, NULL, compare_names);
	int err = n < 0 ? -errno : 0;
	uint32_t kept = 0;

	while (n-- > 0) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s%s", rotated->dir,
			 found[n]->d_name);
		if (is_final(rotated, found[n]->d_name) &&
		    ++kept > rotated->options.keep && unlink(path))
			err = -errno;
		free(found[n]);
	}
	free(found);
	outage_note(&rotated->removal_outage, rotated->host->log, rotated->path,
		    err);
}

/* Give the part its final name: with the next number, also where a lower one has become free. */
static int finish_part(struct rotated *rotated, time_t start, const char *suffix)
{
	unsigned int number =
		start == rotated->last_start ? rotated->next_number : 0;
	char path[PATH_MAX];

	do {
		format_path(rotated, start, number++, suffix, path);
	} while (!faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW));
	if (rename(rotated->part, path))
		return -errno;
	rotated->last_start = start;
	rotated->next_number = number;
	rotated->finished++;
	if (rotated->options.keep)
		remove_oldest(rotated);
	return 0;
}

/* ---- The part, which is written --------------------------------------------------- */

/*
 * A lock for writing needs a descriptor that can write. Users who can only read the file can have
 * locks for reading: such locks prevent ours, but not writing the file.
 */
static int lock_part(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (!fcntl(fd, F_OFD_SETLK, &lock))
		return 0;
	lock.l_type = F_RDLCK;
	return fcntl(fd, F_OFD_GETLK, &lock) || lock.l_type == F_UNLCK ? 0 :
									 -EBUSY;
}

/* @return whether it still has its name */
static bool is_part(const struct rotated *rotated, int fd)
{
	struct stat own, named;

	return !fstat(fd, &own) && !lstat(rotated->part, &named) &&
	       own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

/* A crash has left it: without a torn piece, it is complete. */
static int finish_left(struct rotated *rotated, int fd, time_t written)
{
	uint64_t size;
	int err = pieces_cut(fd, &size);

	if (err || size)
		return err ?: finish_part(rotated, written, pieces_suffix(fd));
	return unlink(rotated->part) ? -errno : 0;
}

/** @return -EBUSY: another process has it; -EPERM: another user made it */
static int open_part(struct rotated *rotated)
{
	const int flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK |
			  O_NOCTTY | O_CLOEXEC;
	cleanup_fd int dir_fd =
		open(rotated->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int fd = open(rotated->part, flags);
	struct stat info;

	if (fd < 0 && errno == ENOENT)
		fd = open(rotated->part, flags | O_CREAT | O_EXCL,
			  rotated->options.mode ?: ROTATE_MODE);
	if (fd < 0 || fstat(fd, &info))
		return -errno;
	if (own_file_refusal(dir_fd, &info))
		return -EPERM;
	/* The size may have changed before the file was locked. */
	if (lock_part(fd) || fstat(fd, &info) || !is_part(rotated, fd))
		return -EBUSY;
	if (info.st_size)
		return finish_left(rotated, fd, info.st_mtime) ?:
			       open_part(rotated);
	rotated->fd = TAKE_FD(fd);
	rotated->is_new = true;
	rotated->has_records = false;
	rotated->size = rotated->whole = 0;
	return 0;
}

static int end_part(struct rotated *rotated)
{
	int err = -ENOENT;

	if (is_part(rotated, rotated->fd))
		err = finish_part(rotated, rotated->start_ms / 1000,
				  rotated->options.suffix ?: "");
	if (!err)
		close_fd(&rotated->fd);
	return err;
}

static int fail_write(struct rotated *rotated, int err)
{
	outage_note(&rotated->outage, rotated->host->log, rotated->path, err);
	backoff_wait(&rotated->retry, now_ms());
	return -EAGAIN;
}

static bool has_room(const struct rotated *rotated, size_t len)
{
	uint64_t most = rotated->options.max_bytes;

	return !most || rotated->size + len <= most;
}

/* @return whether the first record is of an interval that is over */
static bool is_old(const struct rotated *rotated)
{
	int64_t interval = (int64_t)rotated->options.interval_ms;

	return interval && clock_ms(CLOCK_REALTIME) / interval !=
				   rotated->start_ms / interval;
}

static bool may_rotate(const struct rotated *rotated)
{
	return rotated->has_records && rotated->size == rotated->whole;
}

enum peer_state rotate_prepare(struct rotated *rotated, size_t room)
{
	enum peer_state state;
	int err = 0;

	if (!backoff_is_due(&rotated->retry))
		return PEER_AWAY;
	/* The file's directory may be gone, too, or another one mounted over it. */
	if (rotated->fd >= 0 && !is_part(rotated, rotated->fd))
		close_fd(&rotated->fd);
	rotated->retry.due_ms = 0;
	if (rotated->fd >= 0 && may_rotate(rotated) &&
	    (is_old(rotated) || !has_room(rotated, room)))
		err = end_part(rotated);
	if (!err && rotated->fd < 0)
		err = open_part(rotated);
	if (err) {
		fail_write(rotated, err);
		return PEER_AWAY;
	}
	state = rotated->is_new ? PEER_NEW : PEER_READY;
	rotated->is_new = false;
	return state;
}

int rotate_write(struct rotated *rotated, const void *piece, size_t len,
		 bool has_records)
{
	size_t from = rotated->size - rotated->whole, at = from;
	int err = 0;

	if (may_rotate(rotated) && !has_room(rotated, len)) {
		err = end_part(rotated) ?: open_part(rotated);
		rotated->is_new &= err != 0;
	}
	err = err ?: io_write(rotated->fd, piece, len, &at);
	if (at > from && !rotated->has_records)
		rotated->start_ms = clock_ms(CLOCK_REALTIME);
	rotated->size = rotated->whole + at;
	if (err)
		return fail_write(rotated, err);
	rotated->whole = rotated->size;
	rotated->has_records |= has_records;
	outage_note(&rotated->outage, rotated->host->log, rotated->path, 0);
	backoff_reset(&rotated->retry);
	return 0;
}

int rotate_wait_ms(const struct rotated *rotated)
{
	int64_t interval = (int64_t)rotated->options.interval_ms;
	int wait = backoff_left_ms(&rotated->retry);

	if (!interval || !rotated->has_records)
		return wait;
	interval -= clock_ms(CLOCK_REALTIME) % interval;
	return sooner_ms(wait, (int)min_u64((uint64_t)interval, WAIT_MAX_MS));
}

void rotate_counters(const struct rotated *rotated, sink_counter_fn *take,
		     void *ctx)
{
	take(ctx, "files", rotated->finished);
}

int rotate_open(const char *path, const struct rotate_options *options,
		struct sink_host *host, struct rotated **ret_rotated)
{
	struct rotated *rotated = calloc(1, sizeof(*rotated));
	int err;

	if (!rotated)
		return -ENOMEM;
	*rotated = (struct rotated){
		.host = host, .options = *options, .path = path, .fd = -1
	};
	err = set_names(rotated);
	err = err ?: io_make_parents(path);
	err = err ?: open_part(rotated);
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
	host->outage = &rotated->outage;
	*ret_rotated = rotated;
	return 0;
}

/* The next start cuts off a torn piece at its end, whose records were not acknowledged. */
void rotate_close(struct rotated *rotated)
{
	if (!rotated)
		return;
	if (rotated->fd >= 0 && may_rotate(rotated))
		end_part(rotated);
	else if (rotated->fd >= 0 && !rotated->has_records &&
		 is_part(rotated, rotated->fd))
		unlink(rotated->part);
	close_fd(&rotated->fd);
	free(rotated);
}
