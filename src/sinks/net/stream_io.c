// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a stream does while it is connected. */
#include "stream_parts.h"

#include "deadline.h"
#include "tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

void stream_watch(struct stream *stream, uint32_t events)
{
	if (stream->fd < 0 || stream->watched == events)
		return;
	stream->host->ops->watch(stream->host, stream->fd, events);
	stream->watched = events;
}

static ssize_t fail(struct stream *stream, ssize_t err)
{
	if (stream->options.tls)
		stream_fail(stream, "%s", stream->tls.reason);
	else
		stream_fail(stream, "%s",
			    err == -EPIPE ? "it closed the connection" :
					    strerror((int)-err));
	return err;
}

ssize_t stream_read(struct stream *stream, void *to, size_t len)
{
	ssize_t n;

	if (stream->phase != STREAM_UP)
		return -ENOTCONN;
	if (stream->options.tls)
		n = tls_read(&stream->tls, to, len);
	else
		n = tcp_read(stream->fd, to, len);
	if (n > 0)
		return n;
	if (n == -EAGAIN) {
		stream->wants_out |= stream->tls.wants_out;
		return n;
	}
	if (n || !stream->is_idle || !stream->is_good)
		return fail(stream, n ?: -EPIPE);
	stream_restart(stream);
	return -EPIPE;
}

ssize_t stream_write(struct stream *stream, const void *from, size_t len)
{
	ssize_t n;

	if (stream->phase != STREAM_UP)
		return -ENOTCONN;
	if (stream->options.tls)
		n = tls_write(&stream->tls, from, len);
	else
		n = tcp_write(stream->fd, from, len);
	if (n >= 0)
		return n;
	if (n != -EAGAIN)
		return fail(stream, n);
	/* TLS may have to read first, which is watched for anyway. */
	stream->wants_out |= !stream->options.tls || stream->tls.wants_out;
	return n;
}

size_t stream_unconfirmed(const struct stream *stream)
{
	return stream->fd < 0 ? 0 : tcp_unconfirmed(stream->fd);
}

/* It has held for long enough. */
static void look_back(struct stream *stream)
{
	if (!stream->is_good && stream->options.good_ms &&
	    now_ms() >= stream->due_ms)
		stream_is_good(stream);
}

int stream_rest(struct stream *stream)
{
	switch (stream->phase) {
	case STREAM_RESOLVING:
		return -1;
	case STREAM_REACHING:
		stream_watch(stream, EPOLLOUT);
		break;
	case STREAM_SHAKING:
		stream_watch(stream,
			     stream->wants_out ? EPOLLIN | EPOLLOUT : EPOLLIN);
		break;
	case STREAM_UP:
		stream_watch(stream,
			     stream->wants_out ? EPOLLIN | EPOLLOUT : EPOLLIN);
		look_back(stream);
		if (stream->is_good || !stream->options.good_ms)
			return -1;
		break;
	case STREAM_WAITING:
		break;
	}
	return left_ms(stream->due_ms);
}
