// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Records to a collector, by gRPC: a method takes a batch of them, and its answer is that the
 * collector has it. A few calls may be open at a time. After one has failed, all later calls without an
 * answer are cancelled, and their records are sent again, after a while.
 */
#include "grpc.h"

#include "base/clock_ms.h"
#include "sink/module.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	SLICE_MS = 5, /* time of work, then the caller has its turn */
	BATCHES = GRPC_CALLS_MAX + 1,
	STRIDE = 64, /* records between looks at the clock */
};

struct grpc_state {
	struct sink_host *host;
	struct tls_context tls;
	struct grpc_options options;
	struct session session;

	struct batch batches[BATCHES]; /* a ring */
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

static struct batch *batch_at(struct grpc_state *state, uint32_t i)
{
	return &state->batches[(state->first + i) % BATCHES];
}

/* ---- Opening ------------------------------------------------------------------- */

static void grpc_close(void *arg)
{
	struct grpc_state *state = arg;

	session_close(&state->session);
	tls_context_close(&state->tls);
	for (uint32_t i = 0; i < BATCHES; i++)
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

/* ---- Answers --------------------------------------------------------------------- */

/* Send all records again that are not acknowledged. */
static void start_over(struct grpc_state *state)
{
	for (uint32_t i = 0; i <= state->n_sent; i++) {
		struct batch *batch = batch_at(state, i);

		session_cancel(&state->session, &batch->call);
		batch_clear(batch);
	}
	state->n_sent = 0;
	state->skipped = 0;
	state->is_failing = false;
	state->host->ops->rewind(state->host);
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

static void report_refusal(struct grpc_state *state, const struct batch *batch)
{
	const struct call *call = &batch->call;
	const char *name = status_name(call->status);

	outage_log(&state->refusals, state->host->log, NETOBS_LOG_ERROR, name,
		   "%s refuses a record permanently: %s%s%s; it is dropped: %s",
		   state->options.session.stream.address.name, name,
		   *call->message ? ": " : "", call->message, batch->first);
}

/* Report records that an accepted call refused. */
static void report_partial(struct grpc_state *state, const struct batch *batch,
			   uint32_t n)
{
	const char *name = state->options.session.stream.address.name;
	const char *message = batch->answer.message;

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

/* ---- One call -------------------------------------------------------------------- */

/* The collector does not say which records it refuses: the last ones stand for them. */
static void settle_batch(struct grpc_state *state, const struct batch *batch)
{
	const struct sink_host_ops *ops = state->host->ops;
	uint32_t n = batch_find_items(batch, batch->answer.rejected);

	report_partial(state, batch, n);
	if (n && n < batch->n_records)
		ops->ack(state->host,
			 batch_place(batch, batch->n_records - n - 1)->end);
	if (n)
		ops->refuse(state->host, batch->end);
	if (!n || batch->settled.seq != batch->end.seq)
		ops->ack(state->host, batch->settled);
	ahead_settle(&state->ahead, batch->settled.seq);
}

static void take_success(struct grpc_state *state, const struct batch *batch)
{
	bool is_ahead = state->retry.distance;

	/* If it was refused in an accepted call, it is sent again in its turn. */
	if (is_ahead && !batch->answer.rejected)
		ahead_add(&state->ahead, batch->from, batch->end.seq);
	else if (!is_ahead)
		settle_batch(state, batch);
	retry_succeeded(&state->retry, batch->n_records, batch->end.seq);
	pace_succeeded(&state->pace, batch->n_records,
		       now_ms() - batch->call.begun_ms);
	session_is_good(&state->session);
	outage_end(&state->outage, state->host->log, NETOBS_LOG_INFO,
		   "%s accepts records again",
		   state->options.session.stream.address.name);
	if (is_ahead) /* the record before it is not accepted yet */
		start_over(state);
}

static void take_refusal(struct grpc_state *state, const struct batch *batch,
			 enum status_action action)
{
	const struct refusal refusal = {
		.action = action,
		.n_records = batch->n_records,
		.end_seq = batch->end.seq,
		.begun_ms = batch->call.begun_ms,
	};

	if (retry_refused(&state->retry, &refusal)) {
		report_refusal(state, batch);
		state->host->ops->refuse(state->host, batch->end);
		ahead_settle(&state->ahead, batch->end.seq);
	} else if (retry_is_hopeless(&state->retry)) {
		report_failure(state, &batch->call);
	}
}

static void take_failure(struct grpc_state *state, const struct batch *batch)
{
	const struct call *call = &batch->call;
	enum status_action action = status_action(call->status, call->message);

	state->failed_calls++;
	if (call->status == STATUS_DEADLINE_EXCEEDED)
		pace_timed_out(&state->pace, batch->n_records);
	if (action == STATUS_LATER) {
		report_failure(state, call);
		retry_later(&state->retry, call->begun_ms);
		retry_wait(&state->retry, call->retry_ms);
	} else {
		take_refusal(state, batch, action);
	}
}

/* ---- All of them ----------------------------------------------------------------- */

/* Read an answer that is whole, and not compressed, as its prefix says. */
static bool read_reply(const struct message_kind *kind, struct batch *batch)
{
	const struct buffer *reply = &batch->reply;

	return reply->len >= SESSION_PREFIX && !reply->bytes[0] &&
	       session_message_len(reply->bytes) == reply->len - SESSION_PREFIX &&
	       kind->read_answer(reply->bytes + SESSION_PREFIX,
				 reply->len - SESSION_PREFIX, &batch->answer);
}

/* A call that is accepted without an answer of its kind was accepted by something else. */
static void judge_reply(struct grpc_state *state, struct batch *batch)
{
	struct call *call = &batch->call;

	if (batch->is_judged)
		return;
	batch->is_judged = true;
	batch->answer = (struct otlp_answer){ 0 };
	if (!state->options.kind->read_answer ||
	    read_reply(state->options.kind, batch))
		return;
	call->status = STATUS_UNAVAILABLE;
	snprintf(call->message, sizeof(call->message),
		 "the answer is not that of %s", state->options.session.path);
}

static bool has_ended_well(struct grpc_state *state, struct batch *batch)
{
	if (batch->call.phase != CALL_ENDED || batch->call.status != STATUS_OK)
		return false;
	judge_reply(state, batch);
	return batch->call.status == STATUS_OK;
}

/*
 * Take answers from the oldest on, as an acknowledgement covers all earlier records. @return the
 * batch whose call has failed, or NULL
 */
static struct batch *take_successes(struct grpc_state *state)
{
	while (state->n_sent && batch_at(state, 0)->call.phase == CALL_ENDED) {
		struct batch *batch = batch_at(state, 0);

		if (!has_ended_well(state, batch))
			return batch;
		take_success(state, batch);
		if (!state->n_sent)
			break;
		batch_clear(batch);
		state->first = (state->first + 1) % BATCHES;
		state->n_sent--;
	}
	return NULL;
}

/* Note the records of later calls that the collector has. */
static void keep_ahead(struct grpc_state *state)
{
	for (uint32_t i = 1; i < state->n_sent; i++) {
		struct batch *batch = batch_at(state, i);

		if (has_ended_well(state, batch))
			ahead_add(&state->ahead, batch->from, batch->end.seq);
	}
}

static bool is_any_open(struct grpc_state *state)
{
	for (uint32_t i = 0; i < state->n_sent; i++)
		if (batch_at(state, i)->call.phase == CALL_OPEN)
			return true;
	return false;
}

/* Calls under way are awaited: what the collector has of them is not sent again. */
static void take_answers(struct grpc_state *state)
{
	const struct batch *failed = take_successes(state);

	state->is_failing = failed;
	if (!failed || is_any_open(state))
		return;
	state->is_failing = false;
	keep_ahead(state);
	/* A collector that goes away says what it has not looked at. */
	if (!failed->call.is_untouched || !state->session.is_draining)
		take_failure(state, failed);
	start_over(state);
}

/*
 * The connection ended, and all calls with it. That is no failure of theirs, unless the oldest
 * one was late.
 */
static void take_loss(struct grpc_state *state)
{
	const struct batch *oldest;

	take_successes(state);
	keep_ahead(state);
	oldest = batch_at(state, 0);
	if (state->n_sent && session_is_late(&oldest->call))
		pace_timed_out(&state->pace, oldest->n_records);
	retry_renew(&state->retry);
	start_over(state);
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

/* @return whether to send the batch as it is, while there are no more records */
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
		start_over(state);
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
			take_loss(state);
			continue;
		}
		take_answers(state);
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
