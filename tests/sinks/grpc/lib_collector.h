/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A scripted collector in the caller's thread: it does on request what real ones do rarely. */
#ifndef TESTS_SINKS_GRPC_LIB_COLLECTOR_H
#define TESTS_SINKS_GRPC_LIB_COLLECTOR_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>

enum { CALLS_MAX = 1024, BODY_MAX = 5 << 20, RECORDS_MAX = 1 << 18 };

/* What it does with a call when all of it has come, or as soon as it begins. */
enum answer {
	ANSWER_OK,
	ANSWER_STATUS,
	ANSWER_HTTP,
	ANSWER_RESET,
	ANSWER_TRAILERS,     /* headers first, the status at the end */
	ANSWER_EARLY_STATUS, /* the status in the headers, then a reset */
	ANSWER_HTTP_OK,	     /* a status of HTTP beside the status OK of gRPC */
	ANSWER_LOGS,	     /* OK to OTLP, with a reply */
	ANSWER_PICKY, /* as ANSWER_STATUS if one of the records is bad, else OK */
	ANSWER_NEVER
};

struct rpc {
	int32_t id;
	char path[80], authority[64], timeout[16], type[32], te[16], scheme[8];
	uint8_t *body;
	size_t len;
	int64_t due_ms; /* to be answered at; 0: it is not */
	int64_t begun_ms;
};

struct collector {
	int listener, fd;
	uint16_t port;
	nghttp2_session *h2;
	uint32_t window; /* of each stream; 0: HTTP/2's own */
	bool is_early;	 /* it answers before it has read all */
	bool is_leaving; /* it ends each session as soon as it begins */
	int delay_ms;	 /* before it answers a call */

	enum answer answer;
	const char *status, *message; /* ANSWER_STATUS, ANSWER_HTTP */
	const char *details; /* ANSWER_STATUS: grpc-status-details-bin; or NULL */
	const void *reply;   /* ANSWER_LOGS: a message, and its prefix */
	size_t reply_len;
	uint32_t error; /* ANSWER_RESET */

	struct rpc rpcs[CALLS_MAX];
	uint32_t n_rpcs;
	uint64_t n_taken; /* records in calls that it said OK to */
	uint64_t n_again; /* of them, those it had before */
	uint64_t next;	  /* record */
	uint8_t seen[RECORDS_MAX];
	bool is_unordered; /* records need not come in order */
	/* ANSWER_PICKY: every so many records, so many are bad. */
	uint64_t bad_every, n_bad;
};

/* What there is to do, without waiting. */
void collector_serve(struct collector *c);

/* Headers and trailers at once, as gRPC servers do it for errors. */
void collector_answer(struct collector *c, const struct rpc *rpc);

void collector_hang_up(struct collector *c);

#endif
