// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The results of calls. After a call has failed, all later calls without an answer are cancelled,
 * and their records are sent again, after a while.
 */
#include "grpc.h"

#include "sink/module.h"
#include "base/clock_ms.h"
#include "status.h"

#include <stdio.h>

void answers_start_over(struct grpc_state *state)
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
		answers_start_over(state);
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

/* Behind a prefix: not compressed, and all of it. */
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
		state->first = (state->first + 1) % GRPC_BATCHES;
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

/* What is under way is waited for: what the collector has of it is not sent again. */
void answers_take(struct grpc_state *state)
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
	answers_start_over(state);
}

/*
 * The connection ended, and all calls with it. That is no failure of theirs, unless the oldest
 * one was late.
 */
void answers_take_loss(struct grpc_state *state)
{
	const struct batch *oldest;

	take_successes(state);
	keep_ahead(state);
	oldest = batch_at(state, 0);
	if (state->n_sent && session_is_late(&oldest->call))
		pace_timed_out(&state->pace, oldest->n_records);
	retry_renew(&state->retry);
	answers_start_over(state);
}
