// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Calls as streams of HTTP/2, and the life of a connection:
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
#include "grpc.h"

#include "base/clock_ms.h"
#include "base/util.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netobs/version.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	PIECE = 16 << 10,
	PIECES = 16, /* pieces to read or send, then the caller has its turn */
};

/* ---- The request ----------------------------------------------------------------- */

static nghttp2_nv make_header(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)name,
			     .namelen = strlen(name),
			     .value = (uint8_t *)value,
			     .valuelen = strlen(value) };
}

static ssize_t give_body(nghttp2_session *h2, int32_t id, uint8_t *to,
			 size_t size, uint32_t *flags,
			 nghttp2_data_source *source, void *user)
{
	struct call *call = nghttp2_session_get_stream_user_data(h2, id);
	size_t len;

	(void)source;
	(void)user;
	if (!call) /* the call was cancelled */
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	len = min_u64(call->len - call->sent, size);
	memcpy(to, call->bytes + call->sent, len);
	call->sent += len;
	if (call->sent == call->len)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)len;
}

/* Write that the message is not compressed, and its length. */
static void write_prefix(uint8_t *bytes, size_t len)
{
	uint32_t length = htonl((uint32_t)(len - SESSION_PREFIX));

	bytes[0] = 0;
	memcpy(bytes + 1, &length, sizeof(length));
}

size_t session_message_len(const char prefix[SESSION_PREFIX])
{
	uint32_t length;

	memcpy(&length, prefix + 1, sizeof(length));
	return ntohl(length);
}

static int32_t submit_call(struct session *session, struct call *call)
{
	const nghttp2_data_provider body = { .read_callback = give_body };
	const struct session_options *options = &session->options;
	char timeout[24];

	snprintf(timeout, sizeof(timeout), "%llum",
		 (unsigned long long)(call->end_ms - call->begun_ms));

	const nghttp2_nv headers[] = {
		make_header(":method", "POST"),
		make_header(":scheme", options->stream.tls ? "https" : "http"),
		make_header(":path", options->path),
		make_header(":authority", options->stream.address.name),
		make_header("te", "trailers"),
		make_header("grpc-timeout", timeout),
		make_header("content-type", "application/grpc"),
		make_header("user-agent", "netobs/" NETOBS_VERSION),
	};

	return nghttp2_submit_request(session->h2, NULL, headers,
				      ARRAY_SIZE(headers), &body, call);
}

bool session_is_ready(const struct session *session)
{
	return session->h2 && !session->is_draining &&
	       nghttp2_session_check_request_allowed(session->h2);
}

int session_call(struct session *session, struct call *call, uint8_t *bytes,
		 size_t len, struct buffer *answer, uint32_t deadline_ms)
{
	int64_t now = now_ms();
	int32_t id;

	assert(len > SESSION_PREFIX);
	write_prefix(bytes, len);
	*call = (struct call){ .begun_ms = now,
			       .end_ms = now + deadline_ms,
			       .bytes = bytes,
			       .len = len,
			       .answer = answer,
			       .status = -1 };
	id = submit_call(session, call);
	if (id < 0)
		return id == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
	call->id = id;
	call->phase = CALL_OPEN;
	session->n_open++;
	return 0;
}

/* ---- The end of a call ------------------------------------------------------------ */

static void end_call(struct session *session, struct call *call)
{
	call->phase = CALL_ENDED;
	session->n_open--;
}

__attribute__((format(printf, 3, 4))) static void
set_status(struct call *call, int status, const char *format, ...)
{
	va_list args;

	call->status = status;
	va_start(args, format);
	vsnprintf(call->message, sizeof(call->message), format, args);
	va_end(args);
}

bool session_is_late(const struct call *call)
{
	return call->phase == CALL_OPEN && now_ms() >= call->end_ms;
}

int session_check_deadline(struct session *session, struct call *call)
{
	double deadline_s = (double)(call->end_ms - call->begun_ms) / 1000;

	if (call->phase != CALL_OPEN || !session->h2)
		return -1;
	if (!session_is_late(call))
		return left_ms(call->end_ms);
	if (session->heard_ms < call->begun_ms) {
		stream_fail(&session->stream, "no answer in time");
		return 0;
	}
	nghttp2_session_set_stream_user_data(session->h2, call->id, NULL);
	nghttp2_submit_rst_stream(session->h2, NGHTTP2_FLAG_NONE, call->id,
				  NGHTTP2_CANCEL);
	end_call(session, call);
	set_status(call, STATUS_DEADLINE_EXCEEDED, "no answer within %g s",
		   deadline_s);
	return 0;
}

/* ---- What comes back --------------------------------------------------------------- */

static bool is_name(const uint8_t *name, size_t len, const char *expected)
{
	return len == strlen(expected) && !memcmp(name, expected, len);
}

static int take_header(nghttp2_session *h2, const nghttp2_frame *frame,
		       const uint8_t *name, size_t name_len, const uint8_t *value,
		       size_t value_len, uint8_t flags, void *user)
{
	struct call *call =
		nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	const char *text = (const char *)value;
	bool is_end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	(void)flags;
	(void)user;
	if (!call)
		return 0;
	if (is_name(name, name_len, ":status"))
		call->http_status = atoi(text); /* nghttp2 puts a NUL behind it */
	else if (is_end && is_name(name, name_len, "grpc-status"))
		call->status = status_parse(text, value_len);
	else if (is_end && is_name(name, name_len, "grpc-message"))
		status_decode(text, value_len, call->message,
			      sizeof(call->message));
	else if (is_end && is_name(name, name_len, "grpc-status-details-bin"))
		call->retry_ms = status_retry_ms(text, value_len);
	return 0;
}

/* Without memory, the answer is cut off, as one that is too long. */
static int take_data(nghttp2_session *h2, uint8_t flags, int32_t id,
		     const uint8_t *bytes, size_t len, void *user)
{
	const struct call *call = nghttp2_session_get_stream_user_data(h2, id);

	(void)flags;
	(void)user;
	if (call && call->answer && call->answer->len + len <= CALL_ANSWER_MAX)
		buffer_add(call->answer, bytes, len);
	return 0;
}

/* The collector may answer before it has received all: stop sending. */
static void take_end(struct session *session, const nghttp2_frame *frame)
{
	int32_t id = frame->hd.stream_id;
	const struct call *call =
		nghttp2_session_get_stream_user_data(session->h2, id);

	if (call && call->sent < call->len)
		nghttp2_submit_rst_stream(session->h2, NGHTTP2_FLAG_NONE, id,
					  NGHTTP2_NO_ERROR);
}

static int take_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct session *session = user;

	(void)h2;
	switch (frame->hd.type) {
	case NGHTTP2_SETTINGS:
		session->has_settings = true;
		break;
	case NGHTTP2_GOAWAY:
		session->is_draining = true;
		session->goaway = frame->goaway.error_code;
		break;
	case NGHTTP2_HEADERS:
	case NGHTTP2_DATA:
		if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
			take_end(session, frame);
		break;
	default:
		break;
	}
	return 0;
}

/* A proxy answered, or there was no answer. */
static void explain_error(struct call *call, uint32_t error)
{
	if (call->status == STATUS_OK && call->http_status == 200)
		set_status(call, STATUS_UNAVAILABLE,
			   "it answered before it had received the whole call");
	else if (call->http_status && call->http_status != 200)
		set_status(call, STATUS_UNAVAILABLE, "HTTP status %d",
			   call->http_status);
	else if (error != NGHTTP2_NO_ERROR)
		set_status(call, STATUS_UNAVAILABLE, "the call was reset: %s",
			   nghttp2_http2_strerror(error));
	else
		set_status(call, STATUS_UNKNOWN, "the answer has no status");
}

/* OK counts only if the whole call was sent and the answer is complete. */
static bool is_answered(const struct call *call)
{
	if (call->status != STATUS_OK)
		return call->status > 0;
	return call->http_status == 200 && call->sent == call->len;
}

static int take_close(nghttp2_session *h2, int32_t id, uint32_t error, void *user)
{
	struct call *call = nghttp2_session_get_stream_user_data(h2, id);

	if (!call)
		return 0;
	if (!is_answered(call)) {
		explain_error(call, error);
		call->is_untouched = error == NGHTTP2_REFUSED_STREAM;
	}
	end_call(user, call);
	return 0;
}

static nghttp2_session *new_h2(struct session *session)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *h2 = NULL;

	if (nghttp2_session_callbacks_new(&callbacks))
		return NULL;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
								  take_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks,
							     take_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
							       take_close);
	nghttp2_session_client_new(&h2, callbacks, session);
	nghttp2_session_callbacks_del(callbacks);
	return h2;
}

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

	session->h2 = new_h2(session);
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

/* @return whether the server goes away, and no answer is awaited */
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
	/* The numbers of streams are used up at some time. */
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
