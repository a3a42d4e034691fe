// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Records to a collector, by gRPC: a method takes a batch of them, and its answer is that the
 * collector has it. One call is open at a time. Its batch is kept until the outcome of all
 * records is known, so that it can be sent again, or in parts.
 */
#include "grpc.h"

#include "base/clock_ms.h"
#include "sink/module.h"

#include <errno.h>
#include <stdio.h>

enum {
	SLICE_MS = 5, /* time of work, then the caller has its turn */
	STRIDE = 64,  /* records between looks at the clock */
	DEADLINE_MAX_MS = 60 * 1000, /* unless the option is more */
	SPARE = 3, /* a call may take that many times what the last one took */
};

struct grpc_state {
	struct sink_host *host;
	struct tls_context tls;
	struct grpc_options options;
	struct session session;

	struct call_batch batch;
	bool is_filled;	 /* it is sent, maybe again; else it is being filled */
	int64_t fill_ms; /* when filling it began */
	bool is_urgent;	 /* send it without waiting for more records */
	size_t batch_bytes; /* less than the option if the collector refuses larger ones */
	uint32_t deadline_ms; /* more than the option if the collector needs longer */
	uint32_t refused_in_row; /* records that were refused alone */
	struct backoff backoff;	 /* failures, since a call was accepted */

	struct outage outage, refusals;
	uint64_t calls, failed_calls;
};

/* ---- Opening ------------------------------------------------------------------- */

static void grpc_close(void *arg)
{
	struct grpc_state *state = arg;

	session_close(&state->session);
	tls_context_close(&state->tls);
	batch_free(&state->batch.records);
	buffer_free(&state->batch.message);
	buffer_free(&state->batch.reply);
}

static int grpc_open(struct spec *spec, struct sink_host *host, void *arg)
{
	struct grpc_state *state = arg;
	int err = grpc_options_read(&state->options, spec, host->types,
				    &state->tls);

	state->host = host;
	if (err)
		return err;
	state->batch_bytes = state->options.batch_bytes;
	state->deadline_ms = state->options.deadline_ms;
	session_open(&state->session, &state->options.session, host);
	host->ops->wake_in(host, 0);
	return 0;
}

/* ---- Reports --------------------------------------------------------------------- */

/* A collector that lacks the service may get it with its next version. */
static void report_failure(struct grpc_state *state, const struct call *call)
{
	const struct session_options *session = &state->options.session;
	const bool is_unknown = call->status == STATUS_UNIMPLEMENTED;
	const char *name = status_name(call->status);

	outage_log(&state->outage, state->host->log, NETOBS_LOG_ERROR, name,
		   "%s does not %s%s: %s%s%s; trying again",
		   session->stream.address.name,
		   is_unknown ? "implement " : "accept records",
		   is_unknown ? session->path : "", name,
		   *call->message ? ": " : "", call->message);
}

static void report_refusal(struct grpc_state *state, const struct call *call)
{
	const char *name = status_name(call->status);

	outage_log(&state->refusals, state->host->log, NETOBS_LOG_ERROR, name,
		   "%s refuses a record permanently: %s%s%s; it is dropped",
		   state->options.session.stream.address.name, name,
		   *call->message ? ": " : "", call->message);
}

/* Report records that an accepted call refused. */
static void report_partial(struct grpc_state *state, uint32_t n,
			   const char *message)
{
	const char *name = state->options.session.stream.address.name;

	if (n)
		outage_log(&state->refusals, state->host->log, NETOBS_LOG_ERROR,
			   "partial success",
			   "%s refuses records permanently: partial success%s%s; %u %s dropped",
			   name, *message ? ": " : "", message, n,
			   n == 1 ? "is" : "are");
	else if (*message)
		outage_log(&state->refusals, state->host->log, NETOBS_LOG_WARNING,
			   "warning", "%s accepts records with a warning: %s",
			   name, message);
}

/* ---- The end of a call ----------------------------------------------------------- */

static uint32_t clamp_deadline(const struct grpc_state *state, int64_t ms)
{
	const uint32_t first_ms = state->options.deadline_ms;

	return (uint32_t)min_u64(max_u64((uint64_t)ms, first_ms),
				 max_u64(first_ms, DEADLINE_MAX_MS));
}

/* After a deadline, the records are sent again, which the collector may have already. */
static void take_timeout(struct grpc_state *state)
{
	const struct call *call = &state->batch.call;

	state->deadline_ms =
		clamp_deadline(state, 2 * (call->end_ms - call->begun_ms));
	batch_shrink(&state->batch.records, &state->batch_bytes, GRPC_BATCH_MIN);
}

/*
 * The collector works. It does not say which records it refuses: the last ones stand for them.
 */
static void take_success(struct grpc_state *state)
{
	struct batch *records = &state->batch.records;
	const struct otlp_answer *answer = &state->batch.answer;

	report_partial(state, batch_decide_count(records, answer->rejected),
		       answer->message);
	batch_grow(records);
	state->deadline_ms = clamp_deadline(
		state, SPARE * (now_ms() - state->batch.call.begun_ms));
	state->refused_in_row = 0;
	backoff_reset(&state->backoff);
	session_is_good(&state->session);
	outage_end(&state->outage, state->host->log, NETOBS_LOG_INFO,
		   "%s accepts records again",
		   state->options.session.stream.address.name);
}

static void take_failure(struct grpc_state *state)
{
	struct batch *records = &state->batch.records;
	const struct call *call = &state->batch.call;
	enum status_action action = status_action(call->status, call->message);

	/* A collector that goes away says what it has not looked at. */
	if (call->is_untouched && state->session.is_draining)
		return;
	state->failed_calls++;
	if (call->status == STATUS_DEADLINE_EXCEEDED)
		take_timeout(state);
	if (action == STATUS_LATER) {
		report_failure(state, call);
		backoff_wait(&state->backoff, call->begun_ms);
		state->backoff.due_ms = max_i64(state->backoff.due_ms,
						now_ms() + call->retry_ms);
	} else if (action == STATUS_TOO_BIG && records->n_tried > 1) {
		batch_shrink(records, &state->batch_bytes, GRPC_BATCH_MIN);
	} else if (batch_refuse(records, &state->refused_in_row)) {
		report_refusal(state, call);
	}
}

/* Read an answer that is whole, and not compressed, as its prefix says. */
static bool read_reply(struct call_batch *batch)
{
	const struct buffer *reply = &batch->reply;

	return reply->len >= SESSION_PREFIX && !reply->bytes[0] &&
	       session_message_len(reply->bytes) == reply->len - SESSION_PREFIX &&
	       otlp_read_answer(reply->bytes + SESSION_PREFIX,
				reply->len - SESSION_PREFIX, &batch->answer);
}

/* A call that is accepted without an answer of its kind was accepted by something else. */
static bool has_ended_well(struct grpc_state *state)
{
	struct call_batch *batch = &state->batch;
	struct call *call = &batch->call;

	if (call->phase != CALL_ENDED || call->status != STATUS_OK)
		return false;
	batch->answer = (struct otlp_answer){ 0 };
	if (!state->options.is_otlp || read_reply(batch))
		return true;
	call->status = STATUS_UNAVAILABLE;
	snprintf(call->message, sizeof(call->message),
		 "the answer is not that of %s", state->options.session.path);
	return false;
}

static void take_answer(struct grpc_state *state)
{
	struct call_batch *batch = &state->batch;

	if (batch->call.phase != CALL_ENDED)
		return;
	if (has_ended_well(state))
		take_success(state);
	else
		take_failure(state);
	batch->call.phase = CALL_NONE;
	batch_settle(&batch->records, state->host);
	if (batch->records.n_waiting)
		return;
	batch_clear(&batch->records);
	state->is_filled = false;
}

/* The connection ended, and the call with it. That is no failure of the call, unless it was late. */
static void take_loss(struct grpc_state *state)
{
	struct call *call = &state->batch.call;

	if (call->phase != CALL_NONE && !has_ended_well(state)) {
		if (session_is_late(call))
			take_timeout(state);
		call->phase = CALL_NONE;
	}
	take_answer(state);
	backoff_reset(&state->backoff);
	state->batch_bytes = state->options.batch_bytes;
}

/* ---- Sending --------------------------------------------------------------------- */

enum filling { FILLING_EMPTY, FILLING_ON, FILLING_FULL };

/* Records are encoded where they stay. FILLING_ON: the time is over. */
static enum filling fill_call_batch(struct grpc_state *state, int64_t end_ms)
{
	const struct grpc_options *options = &state->options;
	const size_t most = state->batch_bytes - options->head_max;
	struct batch *batch = &state->batch.records;
	struct sink_item item;

	for (uint32_t i = 1; batch->text.len + options->entry_max <= most; i++) {
		if (!batch_reserve(batch, options->entry_max) ||
		    !state->host->ops->next(state->host, &item))
			return FILLING_EMPTY;
		if (!batch->n)
			state->fill_ms = now_ms();
		batch_add(batch,
			  call_put_entry(options, item.record,
					 (uint8_t *)batch_room(batch)),
			  item.record->type, item.end,
			  options->is_otlp ? otlp_items(item.record) : 0);
		if (i % STRIDE == 0 && now_ms() >= end_ms)
			return FILLING_ON;
	}
	return FILLING_FULL;
}

/* @return whether to send the batch as it is, while there are no more records */
static bool is_due(struct grpc_state *state)
{
	const struct batch *batch = &state->batch.records;

	if (!batch->n)
		state->is_urgent = false;
	return batch->n &&
	       (state->is_urgent ||
		now_ms() - state->fill_ms >= state->options.batch_delay_ms);
}

static bool may_send(struct grpc_state *state)
{
	if (!backoff_is_due(&state->backoff))
		return false;
	state->backoff.due_ms = 0;
	return state->batch.call.phase == CALL_NONE &&
	       session_is_ready(&state->session);
}

/* > 0: a call was begun; 0: none can be now; -EAGAIN: the time is over. */
static int send_call(struct grpc_state *state, int64_t end_ms)
{
	struct call_batch *batch = &state->batch;
	enum filling filling;

	if (!may_send(state))
		return 0;
	if (!state->is_filled) {
		filling = fill_call_batch(state, end_ms);
		if (filling == FILLING_ON)
			return -EAGAIN;
		if (filling == FILLING_EMPTY && !is_due(state))
			return 0;
		state->is_filled = true;
		batch->records.limit = batch->records.n;
	}
	if (call_begin(batch, &state->session, &state->options,
		       state->deadline_ms)) {
		backoff_wait(&state->backoff, now_ms());
		return 0;
	}
	state->calls++;
	return 1;
}

static int check_deadline(struct grpc_state *state)
{
	return session_check_deadline(&state->session, &state->batch.call);
}

static int next_wake_ms(struct grpc_state *state)
{
	int wake_ms = session_rest(&state->session);

	wake_ms = sooner_ms(wake_ms, check_deadline(state));
	wake_ms = sooner_ms(wake_ms, backoff_left_ms(&state->backoff));
	if (!state->is_filled && state->batch.records.n && may_send(state))
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
			take_loss(state);
			continue;
		}
		take_answer(state);
		if (session == PEER_AWAY)
			return false;
		if (now_ms() >= end_ms)
			return true;
		sent = send_call(state, end_ms);
	}
	return sent < 0;
}

static int grpc_work(void *arg, bool flush)
{
	struct grpc_state *state = arg;
	bool has_more;

	state->is_urgent |= flush;
	check_deadline(state);
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
	.types = SINK_TYPE(FLOW) | PBNETOBS_TYPES,
	.otlp_types = OTLP_TYPES,
	.state_size = sizeof(struct grpc_state),
	.open = grpc_open,
	.work = grpc_work,
	.close = grpc_close,
	.counters = grpc_counters,
};
