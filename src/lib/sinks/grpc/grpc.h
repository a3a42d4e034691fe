/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A gRPC sink: the messages of calls that it makes of its records, its options, and its calls. */
#ifndef NETOBS_SINKS_GRPC_GRPC_H
#define NETOBS_SINKS_GRPC_GRPC_H

#include "base/buffer.h"
#include "base/outage.h"
#include "retry.h"
#include "session.h"
#include "sinks/batch/batch.h"
#include "sinks/otlp/otlp.h"
#include "sinks/pbflow/pbflow.h"

enum { GRPC_CALLS_MAX = 2 };

/* Options of messages in the spec. */
struct message_options {
	struct pbflow_options pbflow;
	struct otlp otlp;
};

struct message_kind {
	size_t head_max;  /* bytes in front of the records of a message */
	size_t entry_max; /* size of a record */
	uint16_t port; /* default port of targets; 0: the target must have one */
	/* Read the options, for @types of records; errors are refused. */
	void (*read_options)(struct spec *spec, struct message_options *options,
			     uint32_t types);
	/* Choose the method for @types of records; errors are refused. */
	const char *(*choose_method)(struct spec *spec, uint32_t types);
	/* Write a record at @to, which has entry_max. @return bytes */
	size_t (*put_entry)(const struct message_options *options,
			    const struct netobs_record *record, uint8_t *to);
	/* Write the bytes in front of @len bytes of records, at @to; NULL: none. */
	size_t (*put_head)(const struct message_options *options, size_t len,
			   uint8_t *to);
	/* Read how much of an accepted call is refused. NULL: none. If it is there, calls are made one at a time. */
	bool (*read_answer)(const void *bytes, size_t len,
			    struct otlp_answer *ret_answer);
	/* Count the items of a record that read_answer() counts: log records, data points. NULL: none. */
	uint32_t (*count_items)(const struct netobs_record *record);
};

/* flow.proto and netobs.proto */
extern const struct message_kind message_pbflow;

/* logs_service.proto and metrics_service.proto of OpenTelemetry */
extern const struct message_kind message_otlp;

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
	const struct message_kind *kind;
	struct message_options message;
	size_t batch_bytes;
	uint32_t batch_delay_ms;
	uint32_t calls;	      /* at a time */
	uint32_t deadline_ms; /* deadline of the first calls */
};

/**
 * Begin a call with at most @limit records that wait, without the first @skip of them.
 *
 * @return 0 or -errno
 */
int call_begin(struct call_batch *batch, uint32_t skip, uint32_t limit,
	       struct session *session, const struct grpc_options *options,
	       uint32_t deadline_ms);

/*
 * @kind: of messages. @types: of the sink. @context: zeroed; to be closed, also after a failure. -EINVAL:
 * something is wrong, which was logged.
 */
int grpc_options_read(struct grpc_options *options,
		      const struct message_kind *kind, struct spec *spec,
		      uint32_t types, struct tls_context *context);

#endif
