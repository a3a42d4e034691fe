/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A gRPC sink, its options, its batches, and the answers to its calls. */
#ifndef NETOBS_SINKS_GRPC_GRPC_H
#define NETOBS_SINKS_GRPC_GRPC_H

#include "base/outage.h"
#include "message.h"
#include "retry.h"
#include "session.h"
#include "base/buffer.h"

enum { GRPC_CALLS_MAX = 2, GRPC_BATCHES = GRPC_CALLS_MAX + 1 };

/* The place of a record of a batch. */
struct batch_place {
	struct position end;
	uint32_t items; /* number of items that answers count */
};

/* Records that are sent in one call. */
struct batch {
	struct buffer message; /* behind SESSION_PREFIX, and room for a head */
	uint32_t n_records;
	struct buffer places; /* if answers may refuse some: of each, a struct batch_place */
	struct buffer reply;
	struct otlp_answer answer; /* the server's answer */
	bool is_judged;		   /* so far */
	uint64_t from;		   /* records before the first of them */
	struct position end;	   /* position behind the last record */
	struct position settled; /* position to acknowledge with them: `end`, or behind it */
	char first[192]; /* the first one, for the log */
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

/** @return whether one more record fits into the message */
bool batch_has_room(struct batch *batch, const struct grpc_options *options);

/* Add a record, for which batch_has_room(). */
void batch_add(struct batch *batch, const struct sink_item *item,
	       const struct grpc_options *options);

/* Begin its call. */
int batch_send(struct batch *batch, struct session *session,
	       const struct grpc_options *options, uint32_t deadline_ms);

/* The place of record @i. */
static inline const struct batch_place *batch_place(const struct batch *batch,
						    uint32_t i)
{
	return (const struct batch_place *)batch->places.bytes + i;
}

/** @return how many of the last records have @items together */
uint32_t batch_find_items(const struct batch *batch, uint64_t items);

/* Empty it and keep its memory. */
void batch_clear(struct batch *batch);

/* A zeroed batch is fine. */
void batch_free(struct batch *batch);

struct grpc_state {
	struct sink_host *host;
	struct tls_context tls;
	struct grpc_options options;
	struct session session;

	struct batch batches[GRPC_BATCHES]; /* a ring */
	uint32_t first, n_sent; /* sent batches; the next one is being filled */
	uint32_t skipped; /* records before that one, which is tried first */
	int64_t fill_ms;  /* when filling it began */
	bool is_urgent;	  /* send it without waiting for more records */
	bool is_failing;  /* a call has failed: no more until all have ended */
	struct retry retry;
	struct pace pace;
	struct ahead ahead;

	struct outage outage, refusals;
	uint64_t calls, failed_calls;
};

static inline struct batch *batch_at(struct grpc_state *state, uint32_t i)
{
	return &state->batches[(state->first + i) % GRPC_BATCHES];
}

/*
 * @kind: of messages. @types: of the sink. @context: zeroed; to be closed, also after a failure. -EINVAL:
 * something is wrong, which was logged.
 */
int grpc_options_read(struct grpc_options *options,
		      const struct message_kind *kind, struct spec *spec,
		      uint32_t types, struct tls_context *context);

/* Send all records again that are not acknowledged. */
void answers_start_over(struct grpc_state *state);

/* Acknowledge the records of successful calls, and handle failed ones. */
void answers_take(struct grpc_state *state);

/* The connection was lost: acknowledge the records of calls that succeeded, and send the others again. */
void answers_take_loss(struct grpc_state *state);

#endif
