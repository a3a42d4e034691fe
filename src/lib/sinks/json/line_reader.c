// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The reader of a named pipe or a unix socket, which may come and go. */
#include "line_out.h"

#include "base/clock_ms.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { GOOD_MS = 5000 }; /* of a reader that will be looked for soon */

bool line_reader_is_used(const struct line_out *out)
{
	return out->kind == LINE_OUT_SOCKET || out->kind == LINE_OUT_FIFO;
}

bool line_reader_has_hung_up(const struct line_out *out)
{
	struct pollfd fd = { .fd = out->fd };

	return poll(&fd, 1, 0) > 0 && fd.revents & (POLLERR | POLLHUP);
}

void line_reader_lose(struct line_out *out, int err)
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

enum peer_state line_reader_prepare(struct line_out *out)
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
	/* That was cheap: no need to wait for longer. */
	out->retry.failures = 0;
	backoff_wait(&out->retry, now_ms());
	line_out_note(out, err);
	out->host->ops->wake_in(out->host, backoff_left_ms(&out->retry));
	return PEER_AWAY;
}
