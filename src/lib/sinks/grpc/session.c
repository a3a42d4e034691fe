// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A connection's life, and the bytes on it. What the calls are: session_calls.c. */
#include "session.h"

#include "base/clock_ms.h"

#include <errno.h>
#include <string.h>

enum {
	PIECE = 16 << 10,
	PIECES = 16, /* pieces to read or send, then the caller has its turn */
};

/* ---- Opening ------------------------------------------------------------------- */

void session_open(struct session *session,
		  const struct session_options *options, struct sink_host *host)
{
	*session = (struct session){ .options = *options, .host = host };
	stream_open(&session->stream, &session->options.stream, host);
}

/* The settings that the connection begins with: server push is off. */
static int start_session(struct session *session)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};

	session->h2 = session_calls_new(session);
	if (!session->h2)
		return -ENOMEM;
	session->has_settings = session->is_draining = false;
	session->goaway = 0;
	return nghttp2_submit_settings(session->h2, NGHTTP2_FLAG_NONE, settings,
				       1) ?
		       -ENOMEM :
		       0;
}

static void stop_session(struct session *session)
{
	nghttp2_session_del(session->h2);
	session->h2 = NULL;
	session->out_len = 0;
	session->n_open = 0;
	session->has_more = false;
}

void session_close(struct session *session)
{
	stop_session(session);
	stream_close(&session->stream);
}

/* ---- Bytes --------------------------------------------------------------------- */

static int break_off(struct session *session)
{
	stream_fail(&session->stream, session->has_settings ?
					      "it violates HTTP/2" :
					      "it does not speak HTTP/2");
	return -EPROTO;
}

/* Whether the server goes away, and no answer is awaited. */
static bool is_session_over(const struct session *session)
{
	return session->is_draining && !session->n_open;
}

/* Reads at most PIECES. The end of a connection without open calls is no failure. */
static int receive_frames(struct session *session)
{
	uint8_t buf[PIECE];
	ssize_t n = -EAGAIN;
	int pieces = 0;

	session->stream.is_idle = !session->n_open;
	while (!is_session_over(session) && pieces++ < PIECES &&
	       (n = stream_read(&session->stream, buf, sizeof(buf))) > 0) {
		session->heard_ms = now_ms();
		if (nghttp2_session_mem_recv(session->h2, buf, (size_t)n) < 0)
			return break_off(session);
	}
	session->has_more = n > 0;
	return n > 0 || n == -EAGAIN ? 0 : (int)n;
}

/* nghttp2's bytes stay valid until it is asked for more. */
static int send_rest(struct session *session)
{
	while (session->out_len) {
		ssize_t n = stream_write(&session->stream, session->out,
					 session->out_len);

		if (n < 0)
			return (int)n;
		session->out += n;
		session->out_len -= (size_t)n;
		session->sent_bytes += (uint64_t)n;
	}
	return 0;
}

static int send_all(struct session *session)
{
	for (int pieces = 0; pieces < PIECES; pieces++) {
		int err = send_rest(session);
		ssize_t n;

		if (err)
			return err == -EAGAIN ? 0 : err;
		n = nghttp2_session_mem_send(session->h2, &session->out);
		if (n < 0)
			return break_off(session);
		if (!n)
			return 0;
		session->out_len = (size_t)n;
	}
	session->has_more = true;
	return 0;
}

static int exchange_frames(struct session *session)
{
	int err = receive_frames(session);

	if (err || is_session_over(session))
		return err;
	err = send_all(session);
	if (err)
		return err;
	if (!nghttp2_session_want_read(session->h2) &&
	    !nghttp2_session_want_write(session->h2) && !session->is_draining)
		return break_off(session);
	/* Their numbers are used up at some time. */
	if (nghttp2_session_get_next_stream_id(session->h2) > INT32_MAX)
		session->is_draining = true;
	return 0;
}

/* ---- A connection's life --------------------------------------------------------- */

/* A collector that shuts down in order usually accepts records before. */
static void say_goodbye(struct session *session)
{
	if (!session->stream.is_good)
		session->fruitless++;
	if (session->goaway == NGHTTP2_NO_ERROR && session->fruitless < 2)
		stream_restart(&session->stream);
	else if (session->goaway == NGHTTP2_NO_ERROR)
		stream_fail(&session->stream,
			    "it ends each session before it accepts a record");
	else
		stream_fail(&session->stream, "it ended the session: %s",
			    nghttp2_http2_strerror(session->goaway));
}

static enum peer_state lose_session(struct session *session)
{
	stop_session(session);
	return PEER_LOST;
}

enum peer_state session_run(struct session *session)
{
	enum peer_state state = stream_prepare(&session->stream);

	if (session->h2 && state != PEER_READY)
		return lose_session(session);
	if (state < PEER_READY)
		return PEER_AWAY;
	if (!session->h2 && start_session(session)) {
		stream_fail(&session->stream, "%s", strerror(ENOMEM));
		return lose_session(session);
	}
	if (exchange_frames(session))
		return lose_session(session);
	if (!is_session_over(session))
		return PEER_READY;
	say_goodbye(session);
	return lose_session(session);
}

int session_rest(struct session *session)
{
	int wake_ms = stream_rest(&session->stream);

	return session->h2 && session->has_more ? 0 : wake_ms;
}

void session_is_good(struct session *session)
{
	session->fruitless = 0;
	stream_is_good(&session->stream);
}
