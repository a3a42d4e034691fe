// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Reads and writes of a connected stream. */
#include "stream.h"

#include "base/clock_ms.h"
#include "tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

enum { LOOK_MS = 1000 }; /* how often to look for answers while some are due */

void stream_watch(struct stream *stream, uint32_t events)
{
	if (stream->fd < 0 || stream->watched == events)
		return;
	stream->host->ops->watch(stream->host, stream->fd, events);
	stream->watched = events;
}

static ssize_t fail_stream(struct stream *stream, ssize_t err)
{
	if (stream->options.tls)
		stream_fail(stream, "%s", stream->tls.reason);
	else
		stream_fail(stream, "%s",
			    err == -EPIPE ? "it closed the connection" :
					    strerror((int)-err));
	return err;
}

/* TLS before 1.3 has no halves: RFC 5246, 7.2.1, and RFC 8446, 6.1. */
static bool may_be_half(const struct stream *stream)
{
	return stream->options.keeps_half &&
	       (!stream->options.tls || tls_has_halves(&stream->tls));
}

/* The peer sends nothing more; the socket's errors show whether it still reads. */
static ssize_t read_half(struct stream *stream)
{
	int err = tcp_error(stream->fd);

	if (!err)
		return -EAGAIN;
	if (stream->options.tls)
		tls_break(&stream->tls, -err);
	return fail_stream(stream, err);
}

ssize_t stream_read(struct stream *stream, void *to, size_t len)
{
	ssize_t n;

	if (stream->phase != STREAM_READY)
		return -ENOTCONN;
	if (stream->is_half)
		return read_half(stream);
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
	if (!n && may_be_half(stream)) {
		stream->is_half = true;
		return read_half(stream);
	}
	if (n || !stream->is_idle || !stream->is_good)
		return fail_stream(stream, n ?: -EPIPE);
	stream_restart(stream);
	return -EPIPE;
}

ssize_t stream_write(struct stream *stream, const void *from, size_t len)
{
	ssize_t n;

	if (stream->phase != STREAM_READY)
		return -ENOTCONN;
	if (stream->options.tls)
		n = tls_write(&stream->tls, from, len);
	else
		n = tcp_write(stream->fd, from, len);
	if (n >= 0)
		return n;
	if (n != -EAGAIN)
		return fail_stream(stream, n);
	/* TLS may have to read first, which is watched for anyway. */
	stream->wants_out |= !stream->options.tls || stream->tls.wants_out;
	return n;
}

size_t stream_unacknowledged(const struct stream *stream)
{
	return stream->fd < 0 ? 0 : tcp_unacknowledged(stream->fd);
}

/*
 * A side that keeps its window closed answers the probes of it, however rare they
 * become, so the time since its last answer alone says nothing.
 */
bool stream_is_alive(struct stream *stream)
{
	int64_t now = now_ms();
	struct tcp_peer peer;

	if (now < stream->look_ms)
		return true;
	stream->look_ms = now + LOOK_MS;
	if (tcp_look(stream->fd, &peer) || !peer.is_silent) {
		stream->silent_ms = 0;
		return true;
	}
	stream->silent_ms = stream->silent_ms ?: now;
	if (now - stream->silent_ms < stream->options.unanswered_ms ||
	    peer.silent_ms < stream->options.unanswered_ms)
		return true;
	if (stream->options.tls)
		tls_break(&stream->tls, ETIMEDOUT);
	fail_stream(stream, -ETIMEDOUT);
	return false;
}

/* A connection that has lasted for good_ms is good. */
static void note_stable(struct stream *stream)
{
	if (!stream->is_good && stream->options.good_ms &&
	    now_ms() >= stream->due_ms)
		stream_is_good(stream);
}

static uint32_t events_of(const struct stream *stream)
{
	if (stream->is_half) /* its end could be read for ever */
		return stream->wants_out ? EPOLLOUT : EPOLLERR;
	return stream->wants_out ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

/* While something is not acknowledged, answers are looked for. */
static int rest_up(struct stream *stream)
{
	int ms = tcp_unacknowledged(stream->fd) ? LOOK_MS : -1;

	stream_watch(stream, events_of(stream));
	note_stable(stream);
	if (stream->is_good || !stream->options.good_ms)
		return ms;
	return sooner_ms(ms, left_ms(stream->due_ms));
}

int stream_rest(struct stream *stream)
{
	switch (stream->phase) {
	case STREAM_RESOLVING:
		return -1;
	case STREAM_CONNECTING:
		stream_watch(stream, EPOLLOUT);
		break;
	case STREAM_HANDSHAKE:
		stream_watch(stream,
			     stream->wants_out ? EPOLLIN | EPOLLOUT : EPOLLIN);
		break;
	case STREAM_READY:
		return rest_up(stream);
	case STREAM_WAITING:
		break;
	}
	return left_ms(stream->due_ms);
}
