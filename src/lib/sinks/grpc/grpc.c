// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Records to a collector, by gRPC: a method takes a batch of them, and its answer is that the
 * collector has it. A few calls may be open at a time. What a call carries is message.h's.
 */
#include "grpc.h"

#include "sink/module.h"
#include "base/clock_ms.h"

#include <errno.h>
#include <string.h>

enum {
	SLICE_MS = 5, /* time of work, then the caller has its turn */
	STRIDE = 64,  /* records between looks at the clock */
};

/* ---- Opening ------------------------------------------------------------------- */

static void grpc_close(void *arg)
{
	struct grpc_state *state = arg;

	session_close(&state->session);
	tls_context_close(&state->tls);
	for (uint32_t i = 0; i < GRPC_BATCHES; i++)
		batch_free(&state->batches[i]);
}

static int open_calls(struct spec *spec, struct sink_host *host, void *arg,
		      const struct message_kind *kind)
{
	struct grpc_state *state = arg;
	int err = grpc_options_read(&state->options, kind, spec, host->types,
				    &state->tls);

	state->host = host;
	if (err)
		return err;
	retry_open(&state->retry);
	pace_open(&state->pace, state->options.deadline_ms);
	session_open(&state->session, &state->options.session, host);
	host->ops->wake_in(host, 0);
	return 0;
}

static int grpc_open(struct spec *spec, struct sink_host *host, void *arg)
{
	return open_calls(spec, host, arg, &message_pbflow);
}

static int otlp_open(struct spec *spec, struct sink_host *host, void *arg)
{
	return open_calls(spec, host, arg, &message_otlp);
}

/* ---- Sending --------------------------------------------------------------------- */

static uint32_t batch_limit(const struct grpc_state *state)
{
	return (uint32_t)min_u64(state->retry.limit, state->pace.limit);
}

/* The record is not sent: it is settled once all records before it are. */
static void pass_over(struct grpc_state *state, struct batch *batch,
		      struct position end)
{
	if (state->retry.distance)
		return;
	if (batch->n_records) {
		batch->settled = end;
	} else if (state->n_sent) {
		batch_at(state, state->n_sent - 1)->settled = end;
	} else {
		state->host->ops->ack(state->host, end);
		ahead_settle(&state->ahead, end.seq);
	}
}

/* Skip records up to the distance, and try the next one alone. */
static void take_further(struct grpc_state *state, struct batch *batch,
			 const struct sink_item *item)
{
	if (state->skipped++ >= state->retry.distance)
		batch_add(batch, item, &state->options);
}

/* False: there is no record now. */
static bool take_next_batch(struct grpc_state *state, struct batch *batch)
{
	struct sink_item item;

	if (!state->host->ops->next(state->host, &item))
		return false;
	if (!batch->n_records)
		state->fill_ms = now_ms();
	if (ahead_has(&state->ahead, item.end.seq))
		pass_over(state, batch, item.end);
	else if (state->retry.distance)
		take_further(state, batch, &item);
	else
		batch_add(batch, &item, &state->options);
	return true;
}

enum filling { FILLING_EMPTY, FILLING_ON, FILLING_FULL };

/* FILLING_ON: the time is over. */
static enum filling fill_grpc_batch(struct grpc_state *state,
				    struct batch *batch, int64_t end_ms)
{
	uint32_t most = batch_limit(state);

	for (uint32_t i = 1; batch->n_records < most; i++) {
		if (!batch_has_room(batch, &state->options))
			return batch->n_records ? FILLING_FULL : FILLING_EMPTY;
		if (!take_next_batch(state, batch))
			return FILLING_EMPTY;
		/* So no record between its first and last one was passed over. */
		if (batch->n_records && batch->settled.seq != batch->end.seq)
			return FILLING_FULL;
		if (i % STRIDE == 0 && now_ms() >= end_ms)
			return FILLING_ON;
	}
	return FILLING_FULL;
}

/* There are no more records: whether to send the batch as it is. */
static bool is_due(struct grpc_state *state, const struct batch *batch)
{
	if (!batch->n_records)
		state->is_urgent = false;
	return batch->n_records &&
	       (state->is_urgent ||
		now_ms() - state->fill_ms >= state->options.batch_delay_ms);
}

static bool may_send(struct grpc_state *state)
{
	bool is_cautious = retry_is_cautious(&state->retry) ||
			   pace_is_cautious(&state->pace);

	return !state->is_failing &&
	       state->n_sent < (is_cautious ? 1 : state->options.calls) &&
	       session_is_ready(&state->session) &&
	       retry_left_ms(&state->retry) <= 0;
}

/* > 0: a call was begun; 0: none can be now; -EAGAIN: the time is over. */
static int send_batch(struct grpc_state *state, int64_t end_ms)
{
	struct batch *batch = batch_at(state, state->n_sent);
	enum filling filling;

	if (!may_send(state))
		return 0;
	filling = fill_grpc_batch(state, batch, end_ms);
	if (filling == FILLING_ON)
		return -EAGAIN;
	if (filling == FILLING_EMPTY && state->retry.distance &&
	    !batch->n_records) {
		retry_find_nothing(&state->retry, state->skipped);
		answers_start_over(state);
		return -EAGAIN;
	}
	if (filling == FILLING_EMPTY && !is_due(state, batch))
		return 0;
	if (batch_send(batch, &state->session, &state->options,
		       state->pace.deadline_ms))
		return 0;
	state->calls++;
	state->n_sent++;
	return 1;
}

static int check_deadlines(struct grpc_state *state)
{
	int wake_ms = -1;

	for (uint32_t i = 0; i < state->n_sent; i++)
		wake_ms = sooner_ms(wake_ms, session_check_deadline(
						     &state->session,
						     &batch_at(state, i)->call));
	return wake_ms;
}

static int next_wake_ms(struct grpc_state *state)
{
	const struct batch *batch = batch_at(state, state->n_sent);
	int wake_ms = session_rest(&state->session);

	wake_ms = sooner_ms(wake_ms, check_deadlines(state));
	wake_ms = sooner_ms(wake_ms, retry_left_ms(&state->retry));
	if (batch->n_records)
		wake_ms = sooner_ms(wake_ms,
				    left_ms(state->fill_ms +
					    state->options.batch_delay_ms));
	return wake_ms;
}

/* True: there is more to do at once. */
static bool run_calls(struct grpc_state *state)
{
	int64_t end_ms = now_ms() + SLICE_MS;
	int sent = 1;

	while (sent > 0) {
		enum peer_state session = session_run(&state->session);

		if (session == PEER_LOST) {
			answers_take_loss(state);
			continue;
		}
		answers_take(state);
		if (session == PEER_AWAY)
			return false;
		if (now_ms() >= end_ms)
			return true;
		sent = send_batch(state, end_ms);
	}
	return sent < 0;
}

static int grpc_work(void *arg, bool flush)
{
	struct grpc_state *state = arg;
	bool has_more;

	state->is_urgent |= flush;
	check_deadlines(state);
	has_more = run_calls(state);
	/* The outage of its calls, or else of the connection. */
	state->host->outage = outage_is_on(&state->outage) ?
				      &state->outage :
				      &state->session.stream.outage;
	state->host->ops->wake_in(state->host,
				  has_more ? 0 : next_wake_ms(state));
	return 0;
}

static void grpc_counters(const void *arg, sink_counter_fn *take, void *ctx)
{
	const struct grpc_state *state = arg;

	take(ctx, "calls", state->calls);
	take(ctx, "failed_calls", state->failed_calls);
	take(ctx, "connections", state->session.stream.connections);
	take(ctx, "sent_bytes", state->session.sent_bytes);
}

__attribute__((visibility("default")))
const struct sink_module netobs_sink_module = {
	.version = NETOBS_VERSION,
	.kind = "grpc",
	.types = SINK_TYPE(FLOW) | PBNETOBS_TYPES,
	.state_size = sizeof(struct grpc_state),
	.open = grpc_open,
	.work = grpc_work,
	.close = grpc_close,
	.counters = grpc_counters,
};

__attribute__((visibility("default")))
const struct sink_module netobs_sink_otlp_module = {
	.version = NETOBS_VERSION,
	.kind = "otlp",
	.types = OTLP_TYPES,
	.state_size = sizeof(struct grpc_state),
	.open = otlp_open,
	.work = grpc_work,
	.close = grpc_close,
	.counters = grpc_counters,
};
