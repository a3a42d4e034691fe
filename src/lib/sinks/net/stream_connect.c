// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* From a name to a connection: all addresses in turn, TCP, and TLS. */
#include "address.h"
#include "base/clock_ms.h"
#include "stream.h"
#include "tcp.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

__attribute__((format(printf, 2, 3))) static void
set_reason(struct stream *stream, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(stream->reason, sizeof(stream->reason), format, args);
	va_end(args);
}

static void set_bind_reason(struct stream *stream, int err)
{
	bool has_source = stream->options.source.ss_family != AF_UNSPEC;

	if (has_source && err == -EADDRNOTAVAIL)
		set_reason(stream,
			   "no interface has the address that is its source");
	else if (!has_source || err != -EAFNOSUPPORT)
		set_reason(stream, "%s", strerror(-err));
	else if (!*stream->reason)
		set_reason(stream, "it has no address of the source's family");
}

/* @return the next address, each once, from the best one so far on; NULL: no more */
static const struct addrinfo *next_address(struct stream *stream)
{
	const struct addrinfo *address = stream->addresses;
	unsigned int n = 0, skip;

	for (; address; address = address->ai_next)
		n++;
	if (stream->tried >= n)
		return NULL;
	stream->first %= n;
	skip = (stream->first + stream->tried++) % n;
	for (address = stream->addresses; skip; skip--)
		address = address->ai_next;
	return address;
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
		set_reason(stream, "%s", strerror(-err));
		stream_fail_attempt(stream);
		return;
	}
	stream_enter(stream, STREAM_RESOLVING, 0);
}

static bool take_addresses(struct stream *stream)
{
	int err = resolve_take(stream->resolve, &stream->addresses);

	if (err == -EAGAIN)
		return false;
	stream->reason[0] = '\0';
	if (err)
		set_reason(stream, "%s", resolve_error(stream->resolve));
	resolve_close(TAKE_PTR(stream->resolve));
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
	set_reason(stream, "%s", strerror(ETIMEDOUT));
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
	const struct tls_context *tls = stream->options.tls;

	if (tls_context_refresh(tls))
		outage_log(&stream->outage, stream->host->log, NETOBS_LOG_ERROR,
			   tls->files->error,
			   "%s: %s; the previous one stays in use",
			   stream->options.address.name, tls->files->error);
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
		set_reason(stream, "%s", strerror(-err));
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
		set_reason(stream, "%s", stream->tls.reason);
		return try_next(stream);
	}
	become_ready(stream);
	return true;
}

bool stream_step(struct stream *stream)
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
