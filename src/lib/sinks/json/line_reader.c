// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The reader of a named pipe or a unix socket: whether it is there, what it has taken. */
#include "line_out.h"

#include "base/clock_ms.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Whether it has a reader, that may go away, and that may leave something. */
bool line_reader_is_used(const struct line_out *out)
{
	return out->kind == LINE_OUT_SOCKET || out->kind == LINE_OUT_FIFO;
}

/* ---- Lines that it has not taken -------------------------------------------------- */

enum { POSITIONS_MIN = 1024 };

static struct line_position *find_position(const struct line_positions *positions,
					   size_t n)
{
	return &positions->ring[(positions->first + n) % positions->size];
}

static bool grow_positions(struct line_positions *positions)
{
	size_t size = positions->size ? 2 * positions->size : POSITIONS_MIN;
	struct line_position *ring = calloc(size, sizeof(*ring));

	if (!ring)
		return false;
	for (size_t i = 0; i < positions->n; i++)
		ring[i] = *find_position(positions, i);
	free(positions->ring);
	positions->ring = ring;
	positions->size = size;
	positions->first = 0;
	return true;
}

/* Without memory for it, the next line's position will do. */
void line_reader_note(struct line_out *out, size_t len, struct position end)
{
	struct line_positions *positions = &out->positions;

	positions->end += len;
	if (positions->n < positions->size || grow_positions(positions))
		*find_position(positions, positions->n++) =
			(struct line_position){ positions->end, end };
}

/* Remove the lines within the first @bytes. False: there are none. */
static bool take_positions(struct line_positions *positions, uint64_t bytes,
			   struct position *ret_end)
{
	bool has_any = false;

	while (positions->n && find_position(positions, 0)->end <= bytes) {
		*ret_end = find_position(positions, 0)->position;
		positions->first = (positions->first + 1) % positions->size;
		positions->n--;
		has_any = true;
	}
	return has_any;
}

static void acknowledge_lines(struct line_out *out, uint64_t taken)
{
	struct position end;

	if (taken && !out->has_taken) {
		out->has_taken = true;
		out->retry.failures = 0;
		if (out->retry.due_ms > now_ms() + BACKOFF_FIRST_MS)
			out->retry.due_ms = now_ms() + BACKOFF_FIRST_MS;
		line_out_note(out, 0);
	}
	if (take_positions(&out->positions, taken, &end))
		out->host->ops->ack(out->host, end);
}

/* ---- The reader ------------------------------------------------------------------- */

/* Bytes that the reader has not taken. */
static uint64_t count_unread(const struct line_out *out)
{
	int unread = 0;

	if (ioctl(out->fd, out->is_socket ? SIOCOUTQ : FIONREAD, &unread) ||
	    unread < 0)
		return out->sent;
	return min_u64((uint64_t)unread, out->sent);
}

bool line_reader_has_hung_up(const struct line_out *out)
{
	struct pollfd fd = { .fd = out->fd };

	return poll(&fd, 1, 0) > 0 && fd.revents & (POLLERR | POLLHUP);
}

/* A unix socket is reset if its reader has left something, and else not. */
static bool was_reset(const struct line_out *out, int err)
{
	int pending = 0;
	socklen_t len = sizeof(pending);

	getsockopt(out->fd, SOL_SOCKET, SO_ERROR, &pending, &len);
	return err == -ECONNRESET || pending == ECONNRESET;
}

/* Its reader is gone: the next one gets the lines that it had not read. */
void line_reader_lose(struct line_out *out, int err)
{
	bool is_gone = line_reader_has_hung_up(out);

	if (out->kind == LINE_OUT_FIFO)
		acknowledge_lines(out, out->sent - count_unread(out));
	else if (is_gone && !was_reset(out, err))
		acknowledge_lines(out, out->sent);
	line_out_close_target(out);
	line_out_note(out, err);
}

/*
 * What the reader has taken. A socket's queue is emptied after its end is marked, so
 * what it says is true if it has no end behind that.
 */
static void look_at_reader(struct line_out *out)
{
	uint64_t unread = count_unread(out);

	if (line_reader_has_hung_up(out))
		line_reader_lose(out, -EPIPE);
	else
		acknowledge_lines(out, out->sent - unread);
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

static int find_reader(struct line_out *out)
{
	int err;

	/* However soon this attempt ends. */
	backoff_wait(&out->retry, now_ms());
	err = out->kind == LINE_OUT_FIFO ? open_fifo(out) : connect_socket(out);
	if (err) {
		/* That was cheap: no need to wait for longer. */
		out->retry.failures = 0;
		return err;
	}
	out->positions.first = out->positions.n = 0;
	out->positions.end = 0;
	out->sent = 0;
	out->has_taken = false;
	line_out_watch(out);
	return 0;
}

enum peer_state line_reader_prepare(struct line_out *out)
{
	int err;

	if (out->fd >= 0)
		look_at_reader(out);
	if (out->fd >= 0)
		return PEER_READY;
	if (!backoff_is_due(&out->retry)) {
		out->host->ops->wake_in(out->host, backoff_left_ms(&out->retry));
		return PEER_AWAY;
	}
	err = find_reader(out);
	if (!err)
		return PEER_NEW;
	line_out_note(out, err);
	out->host->ops->wake_in(out->host, BACKOFF_FIRST_MS);
	return PEER_AWAY;
}
