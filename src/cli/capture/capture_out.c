/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "capture_out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"

enum {
	BUFFER = 1 << 20,
	/* Packets that have room in it, each with the least that a block has. */
	ENDS = BUFFER / 16,
};

/* ---- Files -------------------------------------------------------------------------- */

/* Only the owner may read captured packets. */
static int open_capture_file(const char *path, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

	return fd < 0 ? -errno : fd;
}

/*
 * A file that is there keeps its contents until the capture has started. One of another
 * user would be read by that one.
 */
static int open_existing(const char *path)
{
	cleanup_fd int fd = open_capture_file(path, 0);
	struct stat status;

	if (fd < 0)
		return fd;
	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return TAKE_FD(fd);
	if (status.st_uid != geteuid())
		return -EPERM;
	(void)!fchmod(fd, 0600); /* some file systems have no modes */
	return TAKE_FD(fd);
}

/* DIR/NAME-20261122T113000Z.EXTENSION, in alphabetical order as in time. */
static int make_name(struct capture_out *out, char **ret_name)
{
	const char *path = out->options.path, *slash = strrchr(path, '/');
	const char *dot = strrchr(slash ? slash : path, '.');
	int stem = dot ? (int)(dot - path) : (int)strlen(path);
	time_t now = time(NULL);
	char stamp[32], number[16] = "";
	struct tm tm;

	out->number = now == out->named ? out->number + 1 : 0;
	out->named = now;
	gmtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
	if (out->number)
		snprintf(number, sizeof(number), "_%03u", out->number);
	if (asprintf(ret_name, "%.*s-%s%s%s", stem, path, stamp, number,
		     path + stem) < 0)
		return -ENOMEM;
	return 0;
}

static void remove_capture_file(struct capture_out *out, uint32_t i)
{
	unlink(out->names[i]);
	free(out->names[i]);
	memmove(out->names + i, out->names + i + 1,
		(--out->n_names - i) * sizeof(*out->names));
}

/* Another run may have made one in this second. */
static int open_next(struct capture_out *out)
{
	char **names = reallocarray(out->names, out->n_names + 1, sizeof(*names));
	cleanup_free char *name = NULL;
	int fd;

	if (!names)
		return -ENOMEM;
	out->names = names;
	do {
		free(TAKE_PTR(name));
		if (make_name(out, &name))
			return -ENOMEM;
		fd = open_capture_file(name, O_EXCL);
	} while (fd == -EEXIST);
	if (fd < 0)
		return fd;
	names[out->n_names++] = TAKE_PTR(name);
	return fd;
}

static int open_target(struct capture_out *out)
{
	struct stat status;
	int fd = out->options.rotate_bytes ? open_next(out) :
		 strcmp(out->options.path, "-") ?
					     open_existing(out->options.path) :
					     STDOUT_FILENO;

	if (fd < 0)
		return fd;
	out->fd = fd;
	out->size = 0;
	out->is_regular = !fstat(fd, &status) && S_ISREG(status.st_mode);
	return 0;
}

static void close_target(struct capture_out *out)
{
	if (out->fd > STDERR_FILENO && close(out->fd) && !out->error)
		out->error = -errno;
	out->fd = -1;
}

/* ---- Bytes ---------------------------------------------------------------------------- */

static uint32_t count_whole(const struct capture_out *out, size_t written)
{
	uint32_t n = 0;

	while (n < out->n_ends && out->ends[n] <= written)
		n++;
	return n;
}

/* Standard output may have been a file before, and others may write to it. */
static int cut_end(const struct capture_out *out, size_t len)
{
	off_t end = lseek(out->fd, 0, SEEK_CUR);
	struct stat status;

	if (end < 0 || fstat(out->fd, &status))
		return -errno;
	if (end != status.st_size)
		return 0;
	return ftruncate(out->fd, end - (off_t)len) ? -errno : 0;
}

/* A disk that is full in the middle of a packet: the file ends before that. */
static void keep_whole(struct capture_out *out, size_t written)
{
	uint32_t n = count_whole(out, written);
	size_t whole = n ? out->ends[n - 1] : 0;
	int err = out->is_regular ? cut_end(out, written - whole) : 0;

	out->packets += n;
	if (err)
		out->error = err;
}

void capture_out_flush(struct capture_out *out)
{
	size_t at = 0;
	int err = 0;

	while (!out->error &&
	       (err = io_write(out->fd, out->buf, out->used, &at)) == -EAGAIN)
		poll(&(struct pollfd){ .fd = out->fd, .events = POLLOUT }, 1, -1);
	if (err) {
		out->error = err;
		keep_whole(out, at);
	} else if (!out->error) {
		out->size += out->used;
		out->packets += out->n_ends;
	}
	out->used = 0;
	out->n_ends = 0;
}

static int take_block(const void *bytes, size_t len, void *user)
{
	struct capture_out *out = user;

	if (out->used + len > BUFFER)
		capture_out_flush(out);
	if (out->error)
		return out->error;
	memcpy(out->buf + out->used, bytes, len);
	out->used += len;
	return 0;
}

static void note_error(struct capture_out *out, int err)
{
	if (err && !out->error)
		out->error = err;
}

/* ---- The public life ------------------------------------------------------------------ */

int capture_out_open(struct capture_out *out,
		     const struct capture_out_options *options)
{
	*out = (struct capture_out){ .options = *options, .fd = -1 };
	out->buf = malloc(BUFFER);
	out->ends = calloc(ENDS, sizeof(*out->ends));
	return out->buf && out->ends ? open_target(out) : -ENOMEM;
}

int capture_out_begin(struct capture_out *out, struct netobs *capture)
{
	const NETOBS_OPTS(netobs_packet_writer_opts, opts, .capture = capture,
			  .write = take_block, .user = out,
			  .format = out->options.format);

	return netobs_packet_writer_new(&opts, &out->writer);
}

void capture_out_start(struct capture_out *out)
{
	if (out->is_regular && out->fd != STDOUT_FILENO && ftruncate(out->fd, 0))
		note_error(out, -errno);
	out->is_started = true;
	capture_out_flush(out);
}

/*
 * A file without its beginning, for which the disk has no room, could not be read. The
 * oldest file remains until there is another one.
 */
static void begin_next(struct capture_out *out)
{
	note_error(out, open_target(out));
	if (out->error)
		return;
	note_error(out, netobs_packet_writer_restart(out->writer));
	capture_out_flush(out);
	if (out->error)
		remove_capture_file(out, out->n_names - 1);
	while (!out->error && out->options.keep &&
	       out->n_names > out->options.keep)
		remove_capture_file(out, 0);
}

void capture_out_rotate(struct capture_out *out)
{
	capture_out_stats(out);
	capture_out_flush(out);
	close_target(out);
	if (!out->error)
		begin_next(out);
}

void capture_out_add(struct capture_out *out, const struct netobs_packet *packet)
{
	if (out->options.rotate_bytes &&
	    out->size + out->used >= out->options.rotate_bytes)
		capture_out_rotate(out);
	if (!out->error)
		note_error(out, netobs_packet_writer_add(out->writer, packet));
	if (!out->error)
		out->ends[out->n_ends++] = out->used;
}

void capture_out_stats(struct capture_out *out)
{
	if (!out->error)
		note_error(out, netobs_packet_writer_stats(out->writer));
}

void capture_out_close(struct capture_out *out)
{
	if (out->is_started && out->fd >= 0 && out->writer)
		capture_out_flush(out);
	close_target(out);
	netobs_packet_writer_free(TAKE_PTR(out->writer));
	for (uint32_t i = 0; i < out->n_names; i++)
		free(out->names[i]);
	free(TAKE_PTR(out->names));
	free(TAKE_PTR(out->buf));
	free(TAKE_PTR(out->ends));
}
