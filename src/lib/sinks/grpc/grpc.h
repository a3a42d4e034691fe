/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A gRPC sink: its options, and the calls that it makes of batches of records. */
#ifndef NETOBS_SINKS_GRPC_GRPC_H
#define NETOBS_SINKS_GRPC_GRPC_H

#include "base/buffer.h"
#include "base/outage.h"
#include "session.h"
#include "sinks/batch/batch.h"
#include "sinks/otlp/otlp.h"
#include "sinks/pbflow/pbflow.h"
#include "status.h"

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
