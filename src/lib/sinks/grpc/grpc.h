/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A gRPC sink, its options, and the answers to its calls. */
#ifndef NETOBS_SINKS_GRPC_GRPC_H
#define NETOBS_SINKS_GRPC_GRPC_H

#include "base/outage.h"
#include "batch.h"
#include "pace.h"
#include "retry.h"

enum { GRPC_CALLS_MAX = 16 };

/* What a spec says of a collector: see netobs-sinks(7). */
struct grpc_options {
	struct session_options session;
	struct pbflow_options pbflow;
	size_t batch_bytes;
	uint32_t batch_delay_ms;
	uint32_t calls;	      /* at a time */
	uint32_t deadline_ms; /* that they begin with */
};

struct grpc_state {
	struct sink_host *host;
	struct tls_context tls;
	struct grpc_options options;
	struct session session;

	struct batch batches[GRPC_CALLS_MAX]; /* a ring */
	uint32_t first, n_sent; /* batches; the one behind them is filled */
	uint32_t skipped; /* records before that one, which is tried first */
	int64_t fill_ms;  /* when filling it began */
	bool is_urgent;	  /* it is sent without waiting for more */
	bool is_failing;  /* a call has failed: no more until all have ended */
	struct retry retry;
	struct pace pace;
	struct ahead ahead;

	struct outage outage, refusals;
	uint64_t calls, failed_calls;
};

static inline struct batch *batch_at(struct grpc_state *state, uint32_t i)
{
	return &state->batches[(state->first + i) % GRPC_CALLS_MAX];
}

/*
 * @types: of the sink. @context: zeroed; to be closed, also after a failure. -EINVAL:
 * something is wrong, which was logged.
 */
int grpc_options_read(struct grpc_options *options, struct spec *spec,
		      uint32_t types, struct tls_context *context);

/* Send all records again that are not acknowledged. */
void answers_start_over(struct grpc_state *state);

/* Acknowledge the records of successful calls, and handle failed ones. */
void answers_take(struct grpc_state *state);

/* The same, after the connection was lost. */
void answers_take_loss(struct grpc_state *state);

#endif
