// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "net.h"

#include "base/clock_ms.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

enum { LOOK_MS = 1000 }; /* how often to look for answers while some are due */

/* Call the sink when the socket has @events; 0: no more. */
static void stream_watch(struct stream *stream, uint32_t events)
{
	if (stream->fd < 0 || stream->watched == events)
		return;
	stream->host->ops->watch(stream->host, stream->fd, events);
	stream->watched = events;
}

static void stream_enter(struct stream *stream, enum stream_phase phase,
			 int64_t due_ms)
{
	stream->phase = phase;
	stream->due_ms = due_ms;
}

/* ---- Opening ------------------------------------------------------------------- */

void stream_open(struct stream *stream, const struct stream_options *options,
		 struct sink_host *host)
{
	struct stream_options *known = &stream->options;

	*stream = (struct stream){ .host = host, .options = *options, .fd = -1 };
	known->connect_ms = known->connect_ms ?: 4000;
	known->unanswered_ms = known->unanswered_ms ?: 8000;
	stream->backoff = (struct backoff){ .first_ms = options->retry_ms,
					    .most_ms = options->retry_max_ms };
	stream_enter(stream, STREAM_WAITING, now_ms());
}

static void stream_forget_addresses(struct stream *stream)
{
	if (stream->addresses)
		freeaddrinfo(stream->addresses);
	stream->addresses = NULL;
	stream->tried = 0;
}

static void stream_release_socket(struct stream *stream)
{
	tls_stop(&stream->tls);
	stream_watch(stream, 0);
	close_fd(&stream->fd);
	stream->wants_out = stream->is_new = false;
}

void stream_close(struct stream *stream)
{
	if (!stream->host)
		return;
	stream_release_socket(stream);
	resolve_close(stream->host, TAKE_PTR(stream->resolve));
	stream_forget_addresses(stream);
	stream->host = NULL;
}

/* ---- Failures ------------------------------------------------------------------ */

/* An attempt that took its time was a delay as well. */
static void wait_to_reconnect(struct stream *stream)
{
	backoff_wait(&stream->backoff,
		     stream->is_good ? now_ms() : stream->began_ms);
	/* An address that accepts connections, but no data, comes last. */
	if (stream->phase == STREAM_READY && !stream->is_good)
		stream->first++;
	stream_release_socket(stream);
	resolve_close(stream->host, TAKE_PTR(stream->resolve));
	stream_forget_addresses(stream);
	stream_enter(stream, STREAM_WAITING, stream->backoff.due_ms);
	stream->was_good = stream->is_good;
	stream->is_good = false;
}

static void log_failure(struct stream *stream, const char *what)
{
	outage_log(&stream->outage, stream->host->log, NETOBS_LOG_ERROR,
		   stream->reason, "%s %s: %s; trying again", what,
		   stream->options.address.name, stream->reason);
}

void stream_fail(struct stream *stream, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(stream->reason, sizeof(stream->reason), format, args);
	va_end(args);
	log_failure(stream, "lost the connection to");
	wait_to_reconnect(stream);
}

void stream_restart(struct stream *stream)
{
	bool was_good = stream->is_good;

	wait_to_reconnect(stream);
	if (!was_good)
		return;
	backoff_reset(&stream->backoff);
	stream->due_ms = now_ms();
}

void stream_is_good(struct stream *stream)
{
	stream->is_good = true;
	backoff_reset(&stream->backoff);
	outage_end(&stream->outage, stream->host->log, NETOBS_LOG_INFO,
		   "connected to %s again", stream->options.address.name);
}

static void stream_fail_attempt(struct stream *stream)
{
	log_failure(stream, "cannot connect to");
	wait_to_reconnect(stream);
}

/* ---- From a name to a connection: all addresses in turn, TCP, and TLS ------------- */

static void set_reason(struct stream *stream, const char *reason)
{
	snprintf(stream->reason, sizeof(stream->reason), "%s", reason);
}

static void set_bind_reason(struct stream *stream, int err)
{
	bool has_source = stream->options.source.ss_family != AF_UNSPEC;

	if (has_source && err == -EADDRNOTAVAIL)
		set_reason(stream,
			   "no interface has the address that is its source");
	else if (!has_source || err != -EAFNOSUPPORT)
		set_reason(stream, strerror(-err));
	else if (!*stream->reason)
		set_reason(stream, "it has no address of the source's family");
}

/* @return the next address, each once, from the best one so far on; NULL: no more */
static const struct addrinfo *next_address(struct stream *stream)
{
	if (stream->tried >= address_count(stream->addresses))
		return NULL;
	return address_at(stream->addresses, stream->first + stream->tried++);
}

/* Start to connect to the next address that allows it. */
static void connect_next(struct stream *stream)
{
	const struct addrinfo *address;

	while ((address = next_address(stream))) {
		int fd;

		stream_release_socket(stream);
		fd = tcp_connect(address, &stream->options.source);
		if (fd < 0) {
			set_bind_reason(stream, fd);
			continue;
		}
		stream->fd = fd;
		stream_watch(stream, EPOLLOUT);
		stream_enter(stream, STREAM_CONNECTING,
			     now_ms() + stream->options.connect_ms);
		return;
	}
	stream_fail_attempt(stream);
}

static void start_resolving(struct stream *stream)
{
	int err;

	stream->began_ms = now_ms();
	err = resolve_start(stream->host, &stream->options.address, SOCK_STREAM,
			    &stream->resolve);
	if (err) {
		set_reason(stream, strerror(-err));
		stream_fail_attempt(stream);
		return;
	}
	stream_enter(stream, STREAM_RESOLVING, 0);
}

static bool take_addresses(struct stream *stream)
{
	if (resolve_take(stream->resolve, &stream->addresses, stream->reason) ==
	    -EAGAIN)
		return false;
	resolve_close(stream->host, TAKE_PTR(stream->resolve));
	connect_next(stream);
	return true;
}

static void become_ready(struct stream *stream)
{
	stream->first += stream->tried - 1;
	stream_forget_addresses(stream);
	stream_enter(stream, STREAM_READY, now_ms() + stream->options.good_ms);
	stream->is_new = true;
	stream->look_ms = stream->silent_ms = 0;
	stream->connections++;
}

static bool is_late(struct stream *stream)
{
	if (now_ms() < stream->due_ms)
		return false;
	set_reason(stream, strerror(ETIMEDOUT));
	return true;
}

/* The attempt with the present address failed. */
static bool try_next(struct stream *stream)
{
	connect_next(stream);
	return true;
}

static void refresh_certificates(struct stream *stream)
{
	struct tls_context *tls = stream->options.tls;

	if (tls_context_refresh(tls))
		outage_log(&stream->outage, stream->host->log, NETOBS_LOG_ERROR,
			   tls->error, "%s: %s; the previous one stays in use",
			   stream->options.address.name, tls->error);
}

static bool finish_connecting(struct stream *stream)
{
	int err = tcp_connect_result(stream->fd);

	if (err == -EAGAIN)
		return is_late(stream) && try_next(stream);
	if (!err && stream->options.tls) {
		refresh_certificates(stream);
		err = tls_start(&stream->tls, stream->options.tls, stream->fd);
	}
	if (err) {
		set_reason(stream, strerror(-err));
		return try_next(stream);
	}
	if (stream->options.tls)
		stream_enter(stream, STREAM_HANDSHAKE, stream->due_ms);
	else
		become_ready(stream);
	return true;
}

static bool finish_handshake(struct stream *stream)
{
	int err = tls_handshake(&stream->tls, stream->options.tls);

	if (err == -EAGAIN) {
		stream->wants_out = stream->tls.wants_out;
		return is_late(stream) && try_next(stream);
	}
	if (err) {
		set_reason(stream, stream->tls.reason);
		return try_next(stream);
	}
	become_ready(stream);
	return true;
}

/* Do the next step to a connection. False: none is possible now. */
static bool stream_step(struct stream *stream)
{
	switch (stream->phase) {
	case STREAM_WAITING:
		if (now_ms() < stream->due_ms)
			return false;
		start_resolving(stream);
		return true;
	case STREAM_RESOLVING:
		return take_addresses(stream);
	case STREAM_CONNECTING:
		return finish_connecting(stream);
	case STREAM_HANDSHAKE:
		return finish_handshake(stream);
	case STREAM_READY:
		break;
	}
	return false;
}

/* ---- Reading and writing --------------------------------------------------------- */

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

ssize_t stream_read(struct stream *stream, void *to, size_t len)
{
	ssize_t n;

	if (stream->phase != STREAM_READY)
		return -ENOTCONN;
	if (stream->options.tls)
		n = tls_read(&stream->tls, to, len);
	else
		n = socket_read(stream->fd, to, len);
	if (n > 0)
		return n;
	if (n == -EAGAIN) {
		stream->wants_out |= stream->tls.wants_out;
		return n;
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
		n = socket_write(stream->fd, from, len);
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
 *
 * @return false: the peer has not answered for too long, and the connection is closed
 */
static bool stream_is_alive(struct stream *stream)
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

static void watch_ready(struct stream *stream)
{
	stream_watch(stream, stream->wants_out ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* While something is not acknowledged, answers are looked for. */
static int rest_up(struct stream *stream)
{
	int ms = tcp_unacknowledged(stream->fd) ? LOOK_MS : -1;

	watch_ready(stream);
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
		watch_ready(stream);
		break;
	case STREAM_READY:
		return rest_up(stream);
	case STREAM_WAITING:
		break;
	}
	return left_ms(stream->due_ms);
}

/* ---- Use ----------------------------------------------------------------------- */

enum peer_state stream_prepare(struct stream *stream)
{
	bool is_new;

	stream->wants_out = false;
	while (stream_step(stream))
		;
	if (stream->phase == STREAM_WAITING)
		return PEER_AWAY;
	if (stream->phase != STREAM_READY)
		return PEER_CONNECTING;
	if (!stream_is_alive(stream))
		return PEER_AWAY;
	is_new = stream->is_new;
	stream->is_new = false;
	return is_new ? PEER_NEW : PEER_READY;
}
