// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Decides when to connect, and when to give up a connection. stream_connect.c connects, stream_io.c
 * reads and writes.
 */
#include "stream.h"

#include "base/clock_ms.h"
#include "address.h"

#include <stdarg.h>
#include <stdio.h>

void stream_enter(struct stream *stream, enum stream_phase phase, int64_t due_ms)
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

void stream_forget_addresses(struct stream *stream)
{
	if (stream->addresses)
		freeaddrinfo(stream->addresses);
	stream->addresses = NULL;
	stream->tried = 0;
}

void stream_release_socket(struct stream *stream)
{
	tls_stop(&stream->tls);
	stream_watch(stream, 0);
	close_fd(&stream->fd);
	stream->wants_out = stream->is_new = false;
	stream->is_half = false;
}

void stream_close(struct stream *stream)
{
	if (!stream->host)
		return;
	stream_release_socket(stream);
	resolve_close(TAKE_PTR(stream->resolve));
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
	resolve_close(TAKE_PTR(stream->resolve));
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

void stream_fail_attempt(struct stream *stream)
{
	log_failure(stream, "cannot connect to");
	wait_to_reconnect(stream);
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
