/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A gRPC sink: its options, and the calls that it makes of batches of records. */
#ifndef NETOBS_SINKS_GRPC_GRPC_H
#define NETOBS_SINKS_GRPC_GRPC_H

#include "base/buffer.h"
#include "sinks/batch/batch.h"
#include "sinks/net/net.h"
#include "sinks/otlp/otlp.h"
#include "sinks/pbflow/pbflow.h"

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The status of a call, and what it means for its records. */

/* The codes, of gRPC's 17, that are used by name. */
enum {
	STATUS_OK = 0,
	STATUS_INVALID_ARGUMENT = 3,
	STATUS_DEADLINE_EXCEEDED = 4,
	STATUS_RESOURCE_EXHAUSTED = 8,
	STATUS_OUT_OF_RANGE = 11,
	STATUS_UNIMPLEMENTED = 12,
	STATUS_UNAVAILABLE = 14,
	STATUS_UNKNOWN = 2,
};

enum status_action {
	STATUS_ACCEPTED,
	STATUS_LATER,	/* the server may accept the same records later */
	STATUS_TOO_BIG, /* the server may accept fewer records at a time */
	STATUS_REFUSED, /* one of the records is to blame */
};

/* @message: the collector's text, which distinguishes a size limit from a quota. */
enum status_action status_action(int status, const char *message);

/* "UNAVAILABLE" ... */
const char *status_name(int status);

enum { STATUS_RETRY_MAX_S = 300 };

/**
 * @param text  of a grpc-status-details-bin header, which may be anything
 * @return ms that the server asks to wait (google.rpc.RetryInfo), within STATUS_RETRY_MAX_S; 0: it
 *         does not
 */
int64_t status_retry_ms(const char *text, size_t len);

/** @return the number in a grpc-status header; STATUS_UNKNOWN: it has none */
int status_parse(const char *text, size_t len);

/*
 * Decode a grpc-message header, which has %XX for unusual characters. For the log, a
 * question mark takes the place of all that is not printable ASCII.
 */
void status_decode(const char *text, size_t len, char *to, size_t size);

/*
 * gRPC calls, each of one message and one answer, over HTTP/2. After a failure, the
 * connection is made again.
 */

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

enum { GRPC_BATCH_MIN = 64 << 10 };

/* Records that are sent in a call, or in several. */
struct call_batch {
	struct batch records;
	struct buffer message; /* of the attempt */
	struct buffer reply;
	struct otlp_answer answer; /* the server's answer */
	struct call call;
};

/* Options of a collector in a spec: see netobs-sinks(7). */
struct grpc_options {
	struct session_options session;
	bool is_otlp; /* else messages are those of flow.proto, or netobs.proto */
	struct pbflow_options pbflow;
	struct otlp otlp;
	size_t entry_max; /* bytes of a record */
	size_t head_max;  /* bytes in front of the records of a message */
	size_t batch_bytes;
	uint32_t batch_delay_ms;
	uint32_t deadline_ms; /* deadline of the first calls */
};

/** Write a record at @to, which has entry_max. @return bytes */
size_t call_put_entry(const struct grpc_options *options,
		      const struct netobs_record *record, uint8_t *to);

/**
 * Begin a call with records that wait.
 *
 * @return 0 or -errno
 */
int call_begin(struct call_batch *batch, struct session *session,
	       const struct grpc_options *options, uint32_t deadline_ms);

/*
 * @types: of the sink. @context: zeroed; to be closed, also after a failure. -EINVAL: something is
 * wrong, which was logged.
 */
int grpc_options_read(struct grpc_options *options, struct spec *spec,
		      uint32_t types, struct tls_context *context);

#endif
