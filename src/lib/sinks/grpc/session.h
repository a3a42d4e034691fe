/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * gRPC calls, each of one message and one answer, over HTTP/2. After a failure, the
 * connection is made again.
 */
#ifndef NETOBS_SINKS_GRPC_SESSION_H
#define NETOBS_SINKS_GRPC_SESSION_H

#include "base/buffer.h"
#include "sinks/net/stream.h"

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SESSION_PREFIX = 5, /* bytes that gRPC has in front of a message */
	CALL_ANSWER_MAX = 1 << 20, /* bytes of an answer; further ones are cut off */
};

enum call_phase { CALL_NONE, CALL_OPEN, CALL_ENDED };

/* Stays where it is in memory while it is open. */
struct call {
	enum call_phase phase;
	int32_t id;		  /* id of its stream in HTTP/2 */
	int64_t begun_ms, end_ms; /* the deadline */
	const uint8_t *bytes;	  /* prefix and message */
	size_t len, sent;
	struct buffer *answer; /* its prefix and message; NULL: it is not kept */

	int http_status; /* 0: none came */
	int status; /* gRPC status, at the end of the answer; -1: none came */
	int64_t retry_ms;  /* time that the server asks to wait; 0: none */
	bool is_untouched; /* the server has not processed it */
	char message[192];
};

struct session_options {
	struct stream_options stream;
	const char *path;
};

struct session {
	struct stream stream;
	struct session_options options;
	struct sink_host *host;
	nghttp2_session *h2; /* NULL: there is no connection */
	const uint8_t *out;  /* from nghttp2, to be sent */
	size_t out_len;
	int64_t heard_ms;   /* when bytes were received last */
	uint32_t n_open;    /* calls */
	bool has_settings;  /* the server speaks HTTP/2 */
	bool is_draining;   /* no more calls: the peer is going away */
	uint32_t goaway;    /* the reason, as HTTP/2 has it */
	uint32_t fruitless; /* sessions in a row that ended before a call did */
	bool has_more;	    /* to be read by the next call of session_run() */
	uint64_t sent_bytes; /* since the start */
};

void session_open(struct session *session,
		  const struct session_options *options, struct sink_host *host);

/* A zeroed session is fine. Open calls are forgotten. */
void session_close(struct session *session);

/* Connect, read and write. PEER_LOST: the calls on the connection are lost with it. */
enum peer_state session_run(struct session *session);

/* @return whether a call can be begun */
bool session_is_ready(const struct session *session);

/*
 * Send @bytes, which are used until the call has ended, with the prefix in front. The call
 * may take @deadline_ms.
 *
 * @param answer  empty, for the answer with its prefix, until the call has ended; or NULL
 */
int session_call(struct session *session, struct call *call, uint8_t *bytes,
		 size_t len, struct buffer *answer, uint32_t deadline_ms);

/* The length that a prefix says. */
size_t session_message_len(const char prefix[SESSION_PREFIX]);

/**
 * End @call if its deadline has passed. If nothing was received meanwhile, the connection
 * is lost.
 *
 * @return when to check again, as for wake_in()
 */
int session_check_deadline(struct session *session, struct call *call);

/** @return whether the deadline has passed, and the connection ended without an answer */
bool session_is_late(const struct call *call);

/* The collector has accepted a call. */
void session_is_good(struct session *session);

/** @return when session_run() has to be called at the latest, as for wake_in() */
int session_rest(struct session *session);

#endif
