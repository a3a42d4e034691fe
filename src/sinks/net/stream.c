// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* From a name to a connection, and over again. What it is used for: stream_io.c. */
#include "stream.h"

#include "backoff.h"
#include "deadline.h"
#include "resolve.h"
#include "stream_io.h"
#include "tcp.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

static void enter(struct stream *stream, enum stream_phase phase, int64_t due_ms)
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
	known->retry_ms = known->retry_ms ?: 1000;
	known->retry_max_ms = known->retry_max_ms ?: 3000;
	known->unanswered_ms = known->unanswered_ms ?: 8000;
	enter(stream, STREAM_WAITING, now_ms());
}

static void stop_resolving(struct stream *stream)
{
	if (stream->resolve)
		stream->host->ops->watch(stream->host,
					 resolve_fd(stream->resolve), 0);
	resolve_close(TAKE_PTR(stream->resolve));
}

static void forget_addresses(struct stream *stream)
{
	if (stream->addresses)
		freeaddrinfo(stream->addresses);
	stream->addresses = NULL;
	stream->tried = 0;
}

static void let_go(struct stream *stream)
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
	let_go(stream);
	stop_resolving(stream);
	forget_addresses(stream);
	stream->host = NULL;
}

/* ---- Failures ------------------------------------------------------------------ */

/* An attempt that took its time was a delay as well. */
static void wait_to_retry(struct stream *stream)
{
	int64_t now = now_ms();
	int64_t from = stream->is_good ? now : stream->began_ms;
	uint32_t delay_ms = backoff_ms(stream->options.retry_ms,
				       stream->options.retry_max_ms,
				       stream->failures++);

	/* One that takes connections and then is of no use comes last. */
	if (stream->phase == STREAM_UP && !stream->is_good)
		stream->first++;
	let_go(stream);
	stop_resolving(stream);
	forget_addresses(stream);
	enter(stream, STREAM_WAITING, max_i64(now, from + delay_ms));
	stream->is_good = false;
}

__attribute__((format(printf, 2, 3))) static void
set_reason(struct stream *stream, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(stream->reason, sizeof(stream->reason), format, args);
	va_end(args);
}

static void tell(struct stream *stream, const char *what)
{
	const char *name = stream->options.address.name;

	if (faults_begin(&stream->faults, stream->reason))
		log_error(stream->host->log, "%s %s: %s; trying again", what,
			  name, stream->reason);
}

void stream_fail(struct stream *stream, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(stream->reason, sizeof(stream->reason), format, args);
	va_end(args);
	tell(stream, "lost the connection to");
	wait_to_retry(stream);
}

void stream_restart(struct stream *stream)
{
	bool was_good = stream->is_good;

	wait_to_retry(stream);
	if (!was_good)
		return;
	stream->failures = 0;
	stream->due_ms = now_ms();
}

void stream_is_good(struct stream *stream)
{
	stream->is_good = true;
	stream->failures = 0;
	if (faults_end(&stream->faults))
		log_info(stream->host->log, "connected to %s again",
			 stream->options.address.name);
}

/* ---- Connecting ---------------------------------------------------------------- */

/* Nothing left to try: stream->reason is that of the last attempt. */
static void give_up(struct stream *stream)
{
	tell(stream, "cannot connect to");
	wait_to_retry(stream);
}

static void say_why_not(struct stream *stream, int err)
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

/* All of them in turn, from the one that was the best; NULL: no more. */
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

/* To the next address that takes it. */
static void reach(struct stream *stream)
{
	const struct addrinfo *address;

	while ((address = next_address(stream))) {
		int fd;

		let_go(stream);
		fd = tcp_connect(address, &stream->options.source,
				 stream->options.unanswered_ms);
		if (fd < 0) {
			say_why_not(stream, fd);
			continue;
		}
		stream->fd = fd;
		stream_watch(stream, EPOLLOUT);
		enter(stream, STREAM_REACHING,
		      now_ms() + stream->options.connect_ms);
		return;
	}
	give_up(stream);
}

static void start(struct stream *stream)
{
	const struct address *address = &stream->options.address;
	int err;

	stream->began_ms = now_ms();
	err = resolve_start(address->host, address->port, SOCK_STREAM,
			    &stream->resolve);
	if (err) {
		set_reason(stream, "%s", strerror(-err));
		give_up(stream);
		return;
	}
	stream->host->ops->watch(stream->host, resolve_fd(stream->resolve),
				 EPOLLIN);
	enter(stream, STREAM_RESOLVING, 0);
}

static bool take_addresses(struct stream *stream)
{
	int err = resolve_take(stream->resolve, &stream->addresses);

	if (err == -EAGAIN)
		return false;
	stream->reason[0] = '\0';
	if (err)
		set_reason(stream, "%s", resolve_error(stream->resolve));
	stop_resolving(stream);
	reach(stream);
	return true;
}

static void arrive(struct stream *stream)
{
	stream->first += stream->tried - 1;
	forget_addresses(stream);
	enter(stream, STREAM_UP, now_ms() + stream->options.good_ms);
	stream->is_new = true;
	stream->connections++;
}

static bool is_late(struct stream *stream)
{
	if (now_ms() < stream->due_ms)
		return false;
	set_reason(stream, "%s", strerror(ETIMEDOUT));
	return true;
}

/* What was begun with an address failed. */
static bool try_next(struct stream *stream)
{
	reach(stream);
	return true;
}

static void refresh(struct stream *stream)
{
	struct tls_context *tls = stream->options.tls;

	if (tls_context_refresh(tls) && faults_begin(&stream->faults, tls->error))
		log_error(stream->host->log,
			  "%s: %s; what was there before is used",
			  stream->options.address.name, tls->error);
}

static bool finish_reaching(struct stream *stream)
{
	int err = tcp_connect_result(stream->fd);

	if (err == -EAGAIN)
		return is_late(stream) && try_next(stream);
	if (!err && stream->options.tls) {
		refresh(stream);
		err = tls_start(&stream->tls, stream->options.tls, stream->fd);
	}
	if (err) {
		set_reason(stream, "%s", strerror(-err));
		return try_next(stream);
	}
	if (stream->options.tls)
		enter(stream, STREAM_SHAKING, stream->due_ms);
	else
		arrive(stream);
	return true;
}

static bool shake(struct stream *stream)
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
	arrive(stream);
	return true;
}

/* One step further; false: there is none, now. */
static bool step(struct stream *stream)
{
	switch (stream->phase) {
	case STREAM_WAITING:
		if (now_ms() < stream->due_ms)
			return false;
		start(stream);
		return true;
	case STREAM_RESOLVING:
		return take_addresses(stream);
	case STREAM_REACHING:
		return finish_reaching(stream);
	case STREAM_SHAKING:
		return shake(stream);
	case STREAM_UP:
		break;
	}
	return false;
}

enum stream_state stream_prepare(struct stream *stream)
{
	bool is_new;

	stream->wants_out = false;
	while (step(stream))
		;
	if (stream->phase == STREAM_WAITING)
		return STREAM_AWAY;
	if (stream->phase != STREAM_UP)
		return STREAM_CONNECTING;
	is_new = stream->is_new;
	stream->is_new = false;
	return is_new ? STREAM_NEW : STREAM_READY;
}
