// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Records to a collector, by gRPC: /pbflow.Collector/Send takes a batch, and its
 * answer is that the collector has it.
 *
 * A few calls may be open at a time. The first that fails takes all behind it along:
 * what it had comes again, after a while.
 */
#include "batch.h"
#include "net/faults.h"
#include "module.h"
#include "net/deadline.h"
#include "options.h"
#include "retry.h"
#include "status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct grpc_state {
	struct sink_host *host;
	struct tls_context tls;
	struct grpc_options options;
	struct session session;

	struct batch batches[GRPC_CALLS_MAX]; /* a ring */
	uint32_t first, n_sent; /* of it; the one behind them is being filled */
	int64_t fill_ms;	/* when that began */
	bool is_urgent;		/* it is sent as it is */
	struct retry retry;

	struct faults faults, refusals;
	uint64_t calls, failed_calls;
};

static struct batch *batch_at(struct grpc_state *state, uint32_t i)
{
	return &state->batches[(state->first + i) % GRPC_CALLS_MAX];
}

/* ---- Opening ------------------------------------------------------------------- */

static void grpc_close(void *arg)
{
	struct grpc_state *state = arg;

	session_close(&state->session);
	tls_context_close(&state->tls);
	for (uint32_t i = 0; i < GRPC_CALLS_MAX; i++)
		batch_free(&state->batches[i]);
	free(state);
}

static int grpc_open(struct spec *spec, struct sink_host *host, void **ret_state)
{
	struct grpc_state *state = calloc(1, sizeof(*state));
	int err;

	if (!state)
		return -ENOMEM;
	state->host = host;
	err = grpc_options_read(&state->options, spec, host, &state->tls);
	if (err) {
		tls_context_close(&state->tls);
		free(state);
		return err;
	}
	retry_reset(&state->retry);
	session_open(&state->session, &state->options.session, host);
	host->ops->wake_in(host, 0);
	*ret_state = state;
	return 0;
}

/* ---- What became of a call ------------------------------------------------------- */

/* What is not acknowledged comes again. */
static void start_over(struct grpc_state *state)
{
	for (uint32_t i = 0; i <= state->n_sent && i < GRPC_CALLS_MAX; i++) {
		struct batch *batch = batch_at(state, i);

		session_cancel(&state->session, &batch->call);
		batch_clear(batch);
	}
	state->n_sent = 0;
	state->host->ops->rewind(state->host);
}

static void tell_failure(struct grpc_state *state, const struct call *call)
{
	const char *name = status_name(call->status);

	if (faults_begin(&state->faults, name))
		log_error(state->host->log,
			  "%s does not take records: %s%s%s; "
			  "trying again",
			  state->options.session.stream.address.name, name,
			  *call->message ? ": " : "", call->message);
}

static void tell_refusal(struct grpc_state *state, const struct call *call)
{
	const char *name = status_name(call->status);

	if (faults_begin(&state->refusals, name))
		log_error(state->host->log,
			  "%s refuses a record for good: %s%s%s",
			  state->options.session.stream.address.name, name,
			  *call->message ? ": " : "", call->message);
}

static void take_success(struct grpc_state *state, const struct batch *batch)
{
	state->host->ops->ack(state->host, batch->end);
	retry_succeeded(&state->retry, batch->end.seq);
	session_is_good(&state->session);
	if (faults_end(&state->faults))
		log_info(state->host->log, "%s takes records again",
			 state->options.session.stream.address.name);
}

static void take_failure(struct grpc_state *state, const struct batch *batch)
{
	const struct call *call = &batch->call;
	enum status_action action = status_action(call->status, call->message);

	state->failed_calls++;
	if (action == STATUS_LATER) {
		tell_failure(state, call);
		retry_later(&state->retry, call->begun_ms);
	} else if (batch->n_records > 1) {
		retry_with_less(&state->retry, batch->n_records, batch->end.seq,
				action == STATUS_TOO_BIG);
	} else {
		tell_refusal(state, call);
		state->host->ops->refuse(state->host, batch->end);
		retry_refused(&state->retry);
	}
	start_over(state);
}

/*
 * The oldest first: what is acknowledged is all up to there. The batch whose call
 * has failed, or NULL.
 */
static struct batch *take_answers(struct grpc_state *state)
{
	while (state->n_sent && batch_at(state, 0)->call.phase == CALL_ENDED) {
		struct batch *batch = batch_at(state, 0);

		if (batch->call.status != STATUS_OK)
			return batch;
		take_success(state, batch);
		batch_clear(batch);
		state->first = (state->first + 1) % GRPC_CALLS_MAX;
		state->n_sent--;
	}
	return NULL;
}

/* What ended with the connection has not failed by itself. */
static void take_loss(struct grpc_state *state)
{
	take_answers(state);
	retry_reset(&state->retry);
	start_over(state);
}

static void settle(struct grpc_state *state)
{
	const struct batch *failed = take_answers(state);

	if (!failed)
		return;
	/* A collector that goes away says what it has not looked at. */
	if (failed->call.is_untouched && state->session.is_draining)
		start_over(state);
	else
		take_failure(state, failed);
}

/* ---- Sending --------------------------------------------------------------------- */

/* True: it is as large as it may be, or there was a reason not to wait for more. */
static bool fill(struct grpc_state *state, struct batch *batch)
{
	struct sink_item item;

	while (batch->n_records < state->retry.limit) {
		if (!batch_has_room(batch, state->options.batch_bytes))
			return batch->n_records;
		if (!state->host->ops->next(state->host, &item))
			break;
		if (!batch->n_records)
			state->fill_ms = now_ms();
		batch_add(batch, &item, &state->options.pbflow);
	}
	if (batch->n_records == state->retry.limit)
		return true;
	if (!batch->n_records)
		state->is_urgent = false;
	return batch->n_records &&
	       (state->is_urgent ||
		now_ms() - state->fill_ms >= state->options.batch_delay_ms);
}

/* True: a call was begun. */
static bool send_batch(struct grpc_state *state)
{
	uint32_t most = retry_is_cautious(&state->retry) ? 1 :
							   state->options.calls;
	struct batch *batch = batch_at(state, state->n_sent);

	if (state->n_sent >= most || !session_is_ready(&state->session) ||
	    retry_left_ms(&state->retry) > 0 || !fill(state, batch))
		return false;
	if (session_call(&state->session, &batch->call, batch->bytes, batch->len))
		return false;
	state->calls++;
	state->n_sent++;
	return true;
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
	if (state->n_sent < GRPC_CALLS_MAX && batch->n_records)
		wake_ms = sooner_ms(wake_ms,
				    left_ms(state->fill_ms +
					    state->options.batch_delay_ms));
	return wake_ms;
}

static void run(struct grpc_state *state)
{
	enum session_state session;

	do {
		session = session_run(&state->session);
		if (session == SESSION_LOST)
			take_loss(state);
		else
			settle(state);
	} while (session == SESSION_LOST ||
		 (session == SESSION_UP && send_batch(state)));
}

static int grpc_work(void *arg, bool flush)
{
	struct grpc_state *state = arg;

	state->is_urgent |= flush;
	check_deadlines(state);
	run(state);
	state->host->ops->wake_in(state->host, next_wake_ms(state));
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
	.open = grpc_open,
	.work = grpc_work,
	.close = grpc_close,
	.counters = grpc_counters,
};
