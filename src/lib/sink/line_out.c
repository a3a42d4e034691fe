// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "line_out.h"

#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	RETRY_MS = 1000,
	ROTATE_MIN = 1 << 20, /* bytes of a file */
};

static const char unix_prefix[] = LINE_OUT_UNIX;

static const char *name_of(const struct line_out *out)
{
	return out->path ?: "standard output";
}

/* ---- Opening ------------------------------------------------------------------- */

/*
 * Whoever shares standard output does not want it to become non-blocking, so a
 * pipe or a terminal is opened another time. A file has no place for that: the
 * position in it would be another one.
 */
static int open_stdout(struct line_out *out)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);
	struct stat info;

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	if (fstat(STDOUT_FILENO, &info))
		return -errno;
	out->fd = STDOUT_FILENO;
	out->is_socket = S_ISSOCK(info.st_mode);
	out->is_pipe = S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode);
	if (out->is_pipe) {
		int fd = open("/proc/self/fd/1",
			      O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

		out->owned = fd >= 0;
		out->fd = fd >= 0 ? fd : STDOUT_FILENO;
	}
	return 0;
}

/* A named pipe is opened for reading as well, not to wait for its reader. */
static int open_file(struct line_out *out)
{
	struct stat info;

	out->is_pipe = !stat(out->path, &info) && S_ISFIFO(info.st_mode);
	out->fd = open(out->path,
		       (out->is_pipe ? O_RDWR : O_WRONLY | O_CREAT | O_TRUNC) |
			       O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		       0644);
	out->owned = true;
	return out->fd < 0 ? -errno : 0;
}

static int check_socket_path(const struct line_out *out)
{
	struct sockaddr_un address;

	if (!*out->path)
		return -ENOENT;
	return strlen(out->path) < sizeof(address.sun_path) ? 0 : -ENAMETOOLONG;
}

static int open_kind(struct line_out *out, const char *target)
{
	if (!target) {
		out->kind = LINE_OUT_STDOUT;
		return open_stdout(out);
	}
	out->kind = LINE_OUT_FILE;
	if (!strncmp(target, unix_prefix, strlen(unix_prefix))) {
		out->kind = LINE_OUT_SOCKET;
		out->is_socket = true;
		target += strlen(unix_prefix);
	}
	out->path = strdup(target);
	if (!out->path)
		return -ENOMEM;
	return out->kind == LINE_OUT_FILE ? open_file(out) :
					    check_socket_path(out);
}

/* What epoll refuses is never waited for: files, and what looks like them. */
static void try_to_watch(struct line_out *out)
{
	out->can_wait = out->fd >= 0 &&
			!out->host->ops->watch(out->host, out->fd, EPOLLERR);
}

static int open_target(struct line_out *out, const char *target)
{
	struct sink_host *host = out->host;
	int err = open_kind(out, target);

	if (err) {
		log_error(host->log, "cannot write to %s: %s",
			  target ?: name_of(out), strerror(-err));
		line_out_close(out);
		return err;
	}
	try_to_watch(out);
	return 0;
}

/* Whether it is rotated; what is wrong with the options is logged. */
static bool parse(struct spec *spec, struct roll_options *roll,
		  struct packer_options *packer)
{
	bool rotates = roll_parse(spec, ROTATE_MIN, roll);
	bool packs = packer_parse(spec, packer);

	roll->suffix = packer->suffix;
	roll->sync_ms = spec_duration_ms(spec, "sync", 100, 60 * 60 * 1000, 0);
	if (!rotates && (packs || roll->sync_ms))
		spec_refuse(
			spec,
			"compress and sync need rotate.bytes or rotate.interval");
	if (rotates && (!spec->target || !strncmp(spec->target, unix_prefix,
						  strlen(unix_prefix))))
		spec_refuse(spec, "only a file can be rotated");
	return rotates;
}

static int open_rotated(struct line_out *out, const char *path,
			const struct roll_options *roll,
			const struct packer_options *packer)
{
	int err = packer_open(&out->packer, packer, out->host->log);

	if (err)
		return err;
	out->kind = LINE_OUT_FILE;
	out->path = strdup(path);
	err = out->path ? roll_open(path, roll, out->host, &out->roll) : -ENOMEM;
	if (err)
		line_out_close(out);
	return err;
}

int line_out_open(struct line_out *out, struct spec *spec, struct sink_host *host)
{
	struct roll_options roll;
	struct packer_options packer;
	bool rotates = parse(spec, &roll, &packer);
	int err = spec_finish(spec);

	*out = (struct line_out){ .host = host, .fd = -1 };
	if (err)
		return err;
	if (rotates)
		return open_rotated(out, spec->target, &roll, &packer);
	return open_target(out, spec->target);
}

static void let_go(struct line_out *out)
{
	if (out->can_wait)
		out->host->ops->watch(out->host, out->fd, 0);
	out->can_wait = false;
	if (out->owned || out->kind == LINE_OUT_SOCKET)
		close_fd(&out->fd);
	out->fd = -1;
}

void line_out_close(struct line_out *out)
{
	roll_close(out->roll);
	out->roll = NULL;
	packer_close(&out->packer);
	let_go(out);
	free(out->path);
	out->path = NULL;
}

/* ---- Errors -------------------------------------------------------------------- */

static void note_error(struct line_out *out, int err)
{
	fault_note(&out->fault, out->host->log, name_of(out), err);
}

/* -EAGAIN, or what is final. */
static int fail(struct line_out *out, int err)
{
	if (out->kind == LINE_OUT_STDOUT)
		return err;
	note_error(out, err);
	if (out->kind == LINE_OUT_SOCKET)
		let_go(out);
	out->host->ops->wake_in(out->host, RETRY_MS);
	return -EAGAIN;
}

/* ---- Use ----------------------------------------------------------------------- */

static int connect_socket(struct line_out *out)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	cleanup_fd int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	strcpy(address.sun_path, out->path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return -errno;
	out->fd = TAKE_FD(fd);
	try_to_watch(out);
	note_error(out, 0);
	return 0;
}

static void wait_for_roll(struct line_out *out)
{
	out->host->ops->wake_in(out->host, roll_wait_ms(out->roll));
}

static enum out_state prepare_roll(struct line_out *out)
{
	enum out_state state = roll_prepare(out->roll);

	if (state == OUT_NEW)
		out->piece_len = 0;
	if (state == OUT_AWAY)
		wait_for_roll(out);
	return state;
}

enum out_state line_out_prepare(struct line_out *out)
{
	int err;

	if (out->roll)
		return prepare_roll(out);
	if (out->fd >= 0)
		return OUT_READY;
	err = connect_socket(out);
	if (!err)
		return OUT_NEW;
	fail(out, err);
	return OUT_AWAY;
}

/* As many lines as a pipe takes whole or not at all: pipe(7). */
static size_t whole_lines(const char *bytes, size_t len)
{
	const char *end = len > PIPE_BUF ? memrchr(bytes, '\n', PIPE_BUF) : NULL;

	return end ? (size_t)(end + 1 - bytes) : min_u64(len, PIPE_BUF);
}

/* A piece is made once, and then offered until it is taken. */
static ssize_t write_to_roll(struct line_out *out, const char *bytes, size_t len)
{
	if (!out->piece_len) {
		ssize_t n = packer_pack(&out->packer, bytes, len, &out->piece);

		if (n < 0)
			return fail(out, (int)n);
		out->piece_len = (size_t)n;
		note_error(out, 0);
	}
	if (roll_make_room(out->roll, out->piece_len) ||
	    roll_write(out->roll, out->piece, out->piece_len)) {
		wait_for_roll(out);
		return -EAGAIN;
	}
	out->piece_len = 0;
	return (ssize_t)len;
}

ssize_t line_out_write(struct line_out *out, const char *bytes, size_t len)
{
	ssize_t n;

	if (out->roll)
		return write_to_roll(out, bytes, len);
	if (out->is_pipe)
		len = whole_lines(bytes, len);
	do {
		n = out->is_socket ? send(out->fd, bytes, len,
					  MSG_DONTWAIT | MSG_NOSIGNAL) :
				     write(out->fd, bytes, len);
	} while (n < 0 && errno == EINTR);

	if (n >= 0) {
		note_error(out, 0);
		return n;
	}
	if (errno != EAGAIN)
		return fail(out, -errno);
	if (out->can_wait)
		out->host->ops->watch(out->host, out->fd, EPOLLOUT);
	else
		out->host->ops->wake_in(out->host, RETRY_MS / 10);
	return -EAGAIN;
}

void line_out_written(struct line_out *out, struct mark end)
{
	if (out->roll)
		roll_written(out->roll, end);
	else
		out->host->ops->ack(out->host, end);
}

int line_out_rest(struct line_out *out)
{
	struct pollfd fd = { .fd = out->fd };

	if (out->roll)
		wait_for_roll(out);
	if (!out->can_wait)
		return 0;
	out->host->ops->watch(out->host, out->fd, EPOLLERR);
	if (poll(&fd, 1, 0) <= 0 || !(fd.revents & (POLLERR | POLLHUP)))
		return 0;
	fail(out, -EPIPE);
	return out->kind == LINE_OUT_STDOUT ? -EPIPE : 0;
}

void line_out_counters(const struct line_out *out, sink_counter_fn *take,
		       void *ctx)
{
	if (out->roll)
		roll_counters(out->roll, take, ctx);
}
