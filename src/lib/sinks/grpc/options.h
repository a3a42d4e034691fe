/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a spec says of a gRPC collector: see netobs-sinks(7). */
#ifndef NETOBS_SINKS_GRPC_OPTIONS_H
#define NETOBS_SINKS_GRPC_OPTIONS_H

#include "session.h"

#include "sinks/pbflow/pbnetobs.h"

enum { GRPC_CALLS_MAX = 16 };

struct grpc_options {
	struct session_options session;
	struct pbflow_options pbflow;
	size_t batch_bytes;
	uint32_t batch_delay_ms;
	uint32_t calls;	      /* at a time */
	uint32_t deadline_ms; /* that they begin with */
};

/*
 * @types: of the sink. @context: zeroed; to be closed, also after a failure. -EINVAL:
 * something is wrong, which was logged.
 */
int grpc_options_read(struct grpc_options *options, struct spec *spec,
		      uint32_t types, struct tls_context *context);

#endif
