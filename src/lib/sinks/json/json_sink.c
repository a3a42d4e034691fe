// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * JSON lines: to standard output, a file, a named pipe or a unix socket. Nothing here waits. A failure of
 * standard output is permanent; the others are retried.
 *
 * Lines are delivered once the kernel has them for a file, or for the reader of a pipe or a
 * socket. When a reader goes away, the next one gets the lines from the first that was not
 * written whole.
 */
#include "base/clock_ms.h"
#include "base/io.h"
#include "base/outage.h"
#include "base/util.h"
#include "record/any.h"
#include "sink/file/rotate.h"
#include "sink/host_fields.h"
#include "sink/module.h"
#include "sink/pack/packer.h"

#include <assert.h>
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
	RETRY_MAX_MS = 8000, /* for readers that go away at once */
	BUSY_MS = 100,	     /* how often to try what cannot be waited for */
	LOOK_MS = 1000,	     /* how often to look whether a file has its name */
	ROTATE_MIN = 1 << 20,	 /* bytes of a file */
	BUFFER_SIZE = 128 << 10, /* of lines */
	GOOD_MS = 5000,		 /* of a reader that will be looked for soon */
};

/* Prefix of targets that are sockets. */
static const char unix_prefix[] = "unix:";

enum line_out_kind {
	LINE_OUT_STDOUT,
	LINE_OUT_FILE,
	LINE_OUT_SOCKET,
	LINE_OUT_FIFO,
};

struct line_out {
	struct sink_host *host;
	enum line_out_kind kind;
	char *path; /* NULL: standard output */
	int fd;
	bool owned;	/* close the descriptor at the end */
	bool is_socket; /* also standard output may be one */
	bool is_pipe;	/* or a terminal */
	bool can_wait;	/* epoll takes it */
	struct outage outage;

	/* For files only. */
	mode_t mode;
	dev_t dev;
	ino_t ino;
	bool is_regular;
	bool is_midway;	   /* a line is written in part */
	int64_t looked_ms; /* whether it still has its name */

	/* For pipes and sockets only. */
	int64_t found_ms;     /* the reader that is there */
	struct backoff retry; /* after readers that went away */

	struct rotated *rotated; /* NULL: it is not rotated */

	struct packer packer; /* if it is */
	const char *piece;    /* that the rotated has not taken yet */
	size_t piece_len;
};

static const char *name_of(const struct line_out *out)
{
	return out->path ?: "standard output";
}

/* ---- Opening ------------------------------------------------------------------- */

/*
 * Other processes may share standard output, which must not become non-blocking, so a
 * pipe or a terminal is opened another time. A file is not, since the position in
 * it would be another one.
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

/* The file may end in a torn line: end that line, so that no record continues it. */
static void end_last_line(struct line_out *out, off_t size)
{
	cleanup_fd int fd = open(out->path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	char last = '\n';

	if (fd >= 0 && size && pread(fd, &last, 1, size - 1) == 1 && last != '\n')
		out->is_midway = write(out->fd, "\n", 1) != 1;
}

static int open_out_file(struct line_out *out)
{
	struct stat info;

	out->fd = open(out->path,
		       O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY |
			       O_CLOEXEC,
		       out->mode);
	if (out->fd < 0 || fstat(out->fd, &info))
		return -errno;
	out->owned = true;
	out->dev = info.st_dev;
	out->ino = info.st_ino;
	out->is_regular = S_ISREG(info.st_mode);
	out->looked_ms = now_ms();
	if (out->is_regular)
		end_last_line(out, info.st_size);
	return 0;
}

/* A named pipe is opened when it has a reader. */
static int open_out_path(struct line_out *out)
{
	struct stat info;

	if (!stat(out->path, &info) && S_ISFIFO(info.st_mode)) {
		out->kind = LINE_OUT_FIFO;
		out->is_pipe = true;
		return 0;
	}
	return io_make_parents(out->path) ?: open_out_file(out);
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
	return out->kind == LINE_OUT_FILE ? open_out_path(out) :
					    check_socket_path(out);
}

/* epoll refuses regular files, which are always writable. */
static void line_out_watch(struct line_out *out)
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
		return err;
	}
	line_out_watch(out);
	return 0;
}

/* Refuse targets that look like network addresses of other kinds. */
static void refuse_network(struct spec *spec)
{
	static const char *const prefixes[] = { "tcp:", "udp:", "tls:", "http:",
						"https:" };
	bool is_network = strstr(spec->target, "://");

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		is_network |=
			!strncmp(spec->target, prefixes[i], strlen(prefixes[i]));
	if (is_network)
		spec_refuse(spec,
			    "lines go to standard output, a file, unix:PATH, tcp://HOST:PORT or tls://HOST:PORT, not to '%s'; a file of that name is ./%s",
			    spec->target, spec->target);
}

/* Errors of options are logged. */
static int line_out_open(struct line_out *out, struct spec *spec,
			 struct sink_host *host)
{
	const bool is_file = spec->target && strncmp(spec->target, unix_prefix,
						     strlen(unix_prefix)) != 0;
	struct rotate_options rotation;
	struct packer_options packer;
	const bool rotates = rotate_parse(spec, ROTATE_MIN, &rotation);
	int err;

	if (packer_parse(spec, &packer) && !rotates)
		spec_refuse(spec,
			    "compress needs rotate.bytes or rotate.interval");
	if (is_file)
		refuse_network(spec);
	else if (rotates)
		spec_refuse(spec, "only a file can be rotated");
	else if (rotation.mode)
		spec_refuse(spec, "mode is for files");
	rotation.suffix = packer.suffix;
	*out = (struct line_out){
		.host = host,
		.fd = -1,
		.mode = rotation.mode ?: ROTATE_MODE,
		.retry.most_ms = RETRY_MAX_MS,
	};
	host->outage = &out->outage;
	/* A trial, which ends in spec_finish(), sees whether there is the compressor. */
	err = packer_open(&out->packer, &packer, host->log) ?: spec_finish(spec);
	if (err || !rotates)
		return err ?: open_target(out, spec->target);
	out->kind = LINE_OUT_FILE;
	out->path = strdup(spec->target);
	return out->path ?
		       rotate_open(out->path, &rotation, host, &out->rotated) :
		       -ENOMEM;
}

static void line_out_close_target(struct line_out *out)
{
	if (out->can_wait)
		out->host->ops->watch(out->host, out->fd, 0);
	out->can_wait = false;
	if (out->owned || out->kind == LINE_OUT_SOCKET)
		close_fd(&out->fd);
	out->fd = -1;
}

static void line_out_close(struct line_out *out)
{
	rotate_close(out->rotated);
	out->rotated = NULL;
	packer_close(&out->packer);
	line_out_close_target(out);
	free(out->path);
	out->path = NULL;
}

/* ---- Errors -------------------------------------------------------------------- */

/* Note the result of an attempt to write: 0, or -errno. */
static void line_out_note(struct line_out *out, int err)
{
	outage_note(&out->outage, out->host->log, name_of(out), err);
}

/* ---- The reader of a named pipe or a unix socket, which may come and go ---------- */

static bool line_reader_is_used(const struct line_out *out)
{
	return out->kind == LINE_OUT_SOCKET || out->kind == LINE_OUT_FIFO;
}

static bool line_reader_has_hung_up(const struct line_out *out)
{
	struct pollfd fd = { .fd = out->fd };

	return poll(&fd, 1, 0) > 0 && fd.revents & (POLLERR | POLLHUP);
}

static void line_reader_lose(struct line_out *out, int err)
{
	if (now_ms() - out->found_ms >= GOOD_MS)
		backoff_reset(&out->retry);
	backoff_wait(&out->retry, now_ms());
	line_out_close_target(out);
	line_out_note(out, err);
}

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
	return 0;
}

/* -ENXIO: there is no reader. */
static int open_fifo(struct line_out *out)
{
	out->fd = open(out->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	out->owned = true;
	return out->fd < 0 ? -errno : 0;
}

static enum peer_state line_reader_prepare(struct line_out *out)
{
	int err;

	if (out->fd >= 0 && line_reader_has_hung_up(out))
		line_reader_lose(out, -EPIPE);
	if (out->fd >= 0)
		return PEER_READY;
	if (!backoff_is_due(&out->retry)) {
		out->host->ops->wake_in(out->host, backoff_left_ms(&out->retry));
		return PEER_AWAY;
	}
	err = out->kind == LINE_OUT_FIFO ? open_fifo(out) : connect_socket(out);
	if (!err) {
		out->found_ms = now_ms();
		line_out_watch(out);
		return PEER_NEW;
	}
	/* The attempt was cheap: do not wait longer each time. */
	out->retry.failures = 0;
	backoff_wait(&out->retry, now_ms());
	line_out_note(out, err);
	out->host->ops->wake_in(out->host, backoff_left_ms(&out->retry));
	return PEER_AWAY;
}

/* ---- Use ----------------------------------------------------------------------- */

/* @return -EAGAIN, or a permanent error */
static int fail_write(struct line_out *out, int err)
{
	if (out->kind == LINE_OUT_STDOUT)
		return err;
	if (line_reader_is_used(out) && out->fd >= 0)
		line_reader_lose(out, err);
	else
		line_out_note(out, err);
	out->host->ops->wake_in(out->host, BACKOFF_FIRST_MS);
	return -EAGAIN;
}

/* @return whether another file, or none, has its name, as after a rotation by another process */
static bool has_moved(const struct line_out *out)
{
	struct stat info;

	return stat(out->path, &info) || info.st_dev != out->dev ||
	       info.st_ino != out->ino;
}

static bool is_lost(struct line_out *out)
{
	int64_t now = now_ms();

	if (out->fd < 0)
		return true;
	if (!out->is_regular || out->is_midway || now - out->looked_ms < LOOK_MS)
		return false;
	out->looked_ms = now;
	return has_moved(out);
}

/* @return whether the file that has its name must wait until a line in another one is whole */
static bool line_out_is_behind(const struct line_out *out)
{
	return out->is_regular && out->is_midway && has_moved(out);
}

static enum peer_state prepare_file(struct line_out *out)
{
	int err;

	if (!is_lost(out))
		return PEER_READY;
	line_out_close_target(out);
	err = open_out_file(out);
	if (!err) {
		line_out_watch(out);
		return PEER_NEW;
	}
	line_out_close_target(out);
	fail_write(out, err);
	return PEER_AWAY;
}

static void wait_for_rotated(struct line_out *out)
{
	out->host->ops->wake_in(out->host, rotate_wait_ms(out->rotated));
}

static enum peer_state prepare_rotated(struct line_out *out)
{
	enum peer_state state = rotate_prepare(out->rotated, 0);

	if (state == PEER_NEW)
		out->piece_len = 0;
	if (state == PEER_AWAY)
		wait_for_rotated(out);
	return state;
}

static enum peer_state line_out_prepare(struct line_out *out)
{
	if (out->rotated)
		return prepare_rotated(out);
	if (line_reader_is_used(out))
		return line_reader_prepare(out);
	return out->kind == LINE_OUT_FILE ? prepare_file(out) : PEER_READY;
}

/* @return bytes of whole lines that a pipe takes at once, or not at all: pipe(7) */
static size_t whole_lines(const char *bytes, size_t len)
{
	const char *end = len > PIPE_BUF ? memrchr(bytes, '\n', PIPE_BUF) : NULL;

	return end ? (size_t)(end + 1 - bytes) : min_u64(len, PIPE_BUF);
}

/* A piece is packed once, and offered until it is written. */
static ssize_t write_rotated(struct line_out *out, const char *bytes, size_t len)
{
	if (!out->piece_len) {
		ssize_t n = packer_pack(&out->packer, bytes, len, &out->piece);

		if (n < 0)
			return fail_write(out, (int)n);
		out->piece_len = (size_t)n;
		line_out_note(out, 0);
	}
	if (rotate_write(out->rotated, out->piece, out->piece_len, true)) {
		wait_for_rotated(out);
		return -EAGAIN;
	}
	out->piece_len = 0;
	return (ssize_t)len;
}

/*
 * @bytes: whole lines, or the rest of them. @return bytes that were written; -EAGAIN: none, the sink is
 * called again; others: a permanent failure
 */
static ssize_t line_out_write(struct line_out *out, const char *bytes, size_t len)
{
	ssize_t n;

	if (out->rotated)
		return write_rotated(out, bytes, len);
	if (out->is_pipe)
		len = whole_lines(bytes, len);
	do {
		n = out->is_socket ? send(out->fd, bytes, len,
					  MSG_DONTWAIT | MSG_NOSIGNAL) :
				     write(out->fd, bytes, len);
	} while (n < 0 && errno == EINTR);

	if (n >= 0) {
		out->is_midway = bytes[n - 1] != '\n';
		line_out_note(out, 0);
		return n;
	}
	if (errno != EAGAIN)
		return fail_write(out, -errno);
	if (out->can_wait)
		out->host->ops->watch(out->host, out->fd, EPOLLOUT);
	else
		out->host->ops->wake_in(out->host, BUSY_MS);
	return -EAGAIN;
}

/* There is nothing to write now. @return 0, or a permanent failure since the last call */
static int line_out_rest(struct line_out *out)
{
	if (out->rotated)
		wait_for_rotated(out);
	if (out->can_wait)
		out->host->ops->watch(out->host, out->fd, EPOLLERR);
	if (!out->can_wait || !line_reader_has_hung_up(out))
		return 0;
	fail_write(out, -EPIPE);
	return out->kind == LINE_OUT_STDOUT ? -EPIPE : 0;
}

/* ---- The module ------------------------------------------------------------------- */

struct json_state {
	struct sink_host *host;
	struct host_fields fields;
	struct line_out out;
	size_t used, sent;   /* bytes of buf */
	struct position end; /* behind the last line in buf */
	char buf[BUFFER_SIZE];
};

static void json_close_sink(void *arg)
{
	struct json_state *state = arg;

	line_out_close(&state->out);
}

static int json_open_sink(struct spec *spec, struct sink_host *host, void *arg)
{
	struct json_state *state = arg;

	state->host = host;
	host_fields_read(&state->fields, spec, spec->target != NULL);
	return line_out_open(&state->out, spec, host);
}

/* Make lines of records until the buffer is full. False: there are no records. */
static bool fill_lines(struct json_state *state)
{
	struct sink_item item;

	while (sizeof(state->buf) - state->used > SINK_JSON_MAX &&
	       state->host->ops->next(state->host, &item)) {
		char *line = state->buf + state->used;
		int written = record_json(item.record, line, RECORD_JSON_MAX);
		size_t len;

		assert(written > 0);
		len = host_fields_add(&state->fields, line, (size_t)written);
		line[len++] = '\n';
		state->used += len;
		state->end = item.end;
	}
	return state->used;
}

/* A new output begins with a whole line. */
static void start_line(struct json_state *state)
{
	const char *end = memrchr(state->buf, '\n', state->sent);

	state->sent = end ? (size_t)(end + 1 - state->buf) : 0;
}

static int json_work(void *arg, bool flush)
{
	struct json_state *state = arg;

	(void)flush;
	for (;;) {
		enum peer_state out = line_out_prepare(&state->out);
		ssize_t n;

		if (out == PEER_AWAY)
			return 0;
		if (out == PEER_NEW)
			start_line(state);
		if (!state->used && !fill_lines(state))
			return line_out_rest(&state->out);
		n = line_out_write(&state->out, state->buf + state->sent,
				   state->used - state->sent);
		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return (int)n;
		state->sent += (size_t)n;
		if (state->sent < state->used)
			continue;
		state->host->ops->ack(state->host, state->end);
		state->used = state->sent = 0;
	}
}

static void json_counters(const void *arg, sink_counter_fn *take, void *ctx)
{
	const struct json_state *state = arg;

	if (state->out.rotated)
		rotate_counters(state->out.rotated, take, ctx);
}

static int json_reopen(void *arg)
{
	struct json_state *state = arg;
	enum peer_state out;

	if (state->out.kind != LINE_OUT_FILE || state->out.rotated)
		return 0;
	state->out.looked_ms = now_ms() - LOOK_MS;
	out = line_out_prepare(&state->out);
	if (out == PEER_NEW)
		start_line(state);
	if (out == PEER_AWAY)
		return -EIO;
	return line_out_is_behind(&state->out) ? -EAGAIN : 0;
}

const struct sink_module sink_json = {
	.version = NETOBS_VERSION,
	.types = SINK_TYPES_ALL,
	.state_size = sizeof(struct json_state),
	.open = json_open_sink,
	.work = json_work,
	.close = json_close_sink,
	.counters = json_counters,
	.reopen = json_reopen,
};
