// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Records to a collector, by gRPC: a method takes a batch of them, and its answer is that the
 * collector has it. A few calls may be open at a time. A batch is kept until the outcome of all
 * its records is known, so that it can be sent again, or in parts.
 */
#include "grpc.h"

#include "base/clock_ms.h"
#include "sink/module.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	SLICE_MS = 5, /* time of work, then the caller has its turn */
	/* The batches that are sent, one that is tried before its turn, and the one that is filled. */
	BATCHES = GRPC_CALLS_MAX + 2,
	STRIDE = 64, /* records between looks at the clock */
};

struct grpc_state {
	struct sink_host *host;
	struct tls_context tls;
	struct grpc_options options;
	struct session session;

	struct call_batch batches[BATCHES]; /* a ring */
	uint32_t first, n_sent; /* sent batches; the next one is being filled */
	int64_t fill_ms;	/* when filling it began */
	bool is_urgent;		/* send it without waiting for more records */
	struct retry retry;
	struct pace pace;

	struct outage outage, refusals;
	uint64_t calls, failed_calls;
};

static struct call_batch *batch_at(struct grpc_state *state, uint32_t i)
{
	return &state->batches[(state->first + i) % BATCHES];
}

/* ---- Opening ------------------------------------------------------------------- */

static void grpc_close(void *arg)
{
	struct grpc_state *state = arg;

	session_close(&state->session);
	tls_context_close(&state->tls);
	for (uint32_t i = 0; i < BATCHES; i++) {
		batch_free(&state->batches[i].records);
		buffer_free(&state->batches[i].message);
		buffer_free(&state->batches[i].reply);
	}
}

static int grpc_open(struct spec *spec, struct sink_host *host, void *arg)
{
	struct grpc_state *state = arg;
	int err = grpc_options_read(&state->options, spec, host->types,
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

/* ---- One call -------------------------------------------------------------------- */

/* The collector works: a call was accepted. */
static void note_success(struct grpc_state *state, const struct call_batch *batch)
{
	const struct batch *records = &batch->records;
	uint32_t n = records->n_tried;

	retry_succeeded(&state->retry, n, batch_tried(records, n - 1)->end.seq);
	pace_succeeded(&state->pace, n, now_ms() - batch->call.begun_ms);
	session_is_good(&state->session);
	outage_end(&state->outage, state->host->log, NETOBS_LOG_INFO,
		   "%s accepts records again",
		   state->options.session.stream.address.name);
}

/*
 * The collector does not say which records it refuses: the last ones stand for them. What it refuses
 * before its turn is sent again in its turn.
 */
static void take_success(struct grpc_state *state, struct call_batch *batch)
{
	const struct otlp_answer *answer = &batch->answer;

	if (state->retry.distance && answer->rejected)
		return;
	report_partial(state,
		       batch_decide_count(&batch->records, answer->rejected),
		       answer->message);
}

static void take_refusal(struct grpc_state *state, struct call_batch *batch,
			 enum status_action action)
{
	const uint32_t n = batch->records.n_tried;
	const struct refusal refusal = {
		.action = action,
		.n_records = n,
		.end_seq = batch_tried(&batch->records, n - 1)->end.seq,
		.begun_ms = batch->call.begun_ms,
	};

	if (retry_refused(&state->retry, &refusal)) {
		report_refusal(state, &batch->call);
		batch_decide(&batch->records, OUTCOME_REFUSED);
	} else if (retry_is_hopeless(&state->retry)) {
		report_failure(state, &batch->call);
	}
}

static void take_failure(struct grpc_state *state, struct call_batch *batch)
{
	const struct call *call = &batch->call;
	enum status_action action = status_action(call->status, call->message);

	/* A collector that goes away says what it has not looked at. */
	if (call->is_untouched && state->session.is_draining)
		return;
	state->failed_calls++;
	if (call->status == STATUS_DEADLINE_EXCEEDED)
		pace_timed_out(&state->pace, batch->records.n_tried);
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
static bool read_reply(struct call_batch *batch)
{
	const struct buffer *reply = &batch->reply;

	return reply->len >= SESSION_PREFIX && !reply->bytes[0] &&
	       session_message_len(reply->bytes) == reply->len - SESSION_PREFIX &&
	       otlp_read_answer(reply->bytes + SESSION_PREFIX,
				reply->len - SESSION_PREFIX, &batch->answer);
}

/* A call that is accepted without an answer of its kind was accepted by something else. */
static bool has_ended_well(const struct grpc_state *state,
			   struct call_batch *batch)
{
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

/* Forget batches from the oldest on, as an acknowledgement covers all earlier records. */
static void settle_batches(struct grpc_state *state)
{
	while (state->n_sent) {
		struct call_batch *batch = batch_at(state, 0);

		batch_settle(&batch->records, state->host);
		if (batch->records.n_waiting)
			return;
		batch_clear(&batch->records);
		state->first = (state->first + 1) % BATCHES;
		state->n_sent--;
	}
}

/*
 * Take answers from the oldest on. The outcome of a call behind one that has failed says nothing of the
 * collector, unless it was made to show whether the collector accepts other records.
 */
static void take_answers(struct grpc_state *state)
{
	const bool is_ahead = state->retry.distance;
	bool has_failed = false;

	for (uint32_t i = 0; i < state->n_sent; i++) {
		struct call_batch *batch = batch_at(state, i);
		bool counts = is_ahead || !has_failed;

		if (batch->call.phase == CALL_OPEN)
			break;
		if (has_ended_well(state, batch)) {
			take_success(state, batch);
			if (counts)
				note_success(state, batch);
		} else if (batch->call.phase == CALL_ENDED && counts) {
			take_failure(state, batch);
		}
		batch->call.phase = CALL_NONE;
		has_failed |= batch->records.n_waiting;
	}
	settle_batches(state);
}

/*
 * The connection ended, and all calls with it. That is no failure of theirs, unless the oldest
 * one was late.
 */
static void take_loss(struct grpc_state *state)
{
	bool is_oldest = true;

	for (uint32_t i = 0; i < state->n_sent; i++) {
		struct call_batch *batch = batch_at(state, i);

		if (batch->call.phase == CALL_NONE ||
		    has_ended_well(state, batch))
			continue;
		if (is_oldest && session_is_late(&batch->call))
			pace_timed_out(&state->pace, batch->records.n_tried);
		is_oldest = false;
		batch->call.phase = CALL_NONE;
	}
	take_answers(state);
	retry_renew(&state->retry);
}

/* ---- Sending --------------------------------------------------------------------- */

enum filling { FILLING_EMPTY, FILLING_ON, FILLING_FULL };

/* Records are encoded where they stay. FILLING_ON: the time is over. */
static enum filling fill_call_batch(struct grpc_state *state, int64_t end_ms)
{
	const struct grpc_options *options = &state->options;
	const size_t most = options->batch_bytes - options->head_max;
	struct batch *batch = &batch_at(state, state->n_sent)->records;
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
			  0, item.end,
			  options->is_otlp ? otlp_items(item.record) : 0);
		if (i % STRIDE == 0 && now_ms() >= end_ms)
			return FILLING_ON;
	}
	return FILLING_FULL;
}

/* @return whether to send the batch as it is, while there are no more records */
static bool is_due(struct grpc_state *state, const struct batch *batch)
{
	if (!batch->n)
		state->is_urgent = false;
	return batch->n &&
	       (state->is_urgent ||
		now_ms() - state->fill_ms >= state->options.batch_delay_ms);
}

static bool may_send(struct grpc_state *state)
{
	bool is_cautious = retry_is_cautious(&state->retry) ||
			   pace_is_cautious(&state->pace);

	return state->session.n_open < (is_cautious ? 1 : state->options.calls) &&
	       session_is_ready(&state->session) &&
	       retry_left_ms(&state->retry) <= 0;
}

/* @return 1; 0: it could not be begun */
static int begin_call(struct grpc_state *state, struct call_batch *batch,
		      uint32_t skip)
{
	uint32_t limit = (uint32_t)min_u64(state->retry.limit, state->pace.limit);

	if (call_begin(batch, skip, limit, &state->session, &state->options,
		       state->pace.deadline_ms)) {
		retry_later(&state->retry, now_ms());
		return 0;
	}
	state->calls++;
	return 1;
}

/* Send the record at the distance, alone. As for send_call(). */
static int send_ahead(struct grpc_state *state, int64_t end_ms)
{
	uint32_t skip = state->retry.distance;

	if (state->n_sent + 1 < BATCHES &&
	    fill_call_batch(state, end_ms) == FILLING_ON)
		return -EAGAIN;
	for (uint32_t i = 0; i <= state->n_sent; i++) {
		struct call_batch *batch = batch_at(state, i);

		if (skip < batch->records.n_waiting) {
			state->n_sent += i == state->n_sent;
			return begin_call(state, batch, skip);
		}
		skip -= batch->records.n_waiting;
	}
	retry_find_nothing(&state->retry, state->retry.distance - skip);
	return -EAGAIN;
}

/* @return the oldest batch that is not being sent; NULL: none */
static struct call_batch *find_rest(struct grpc_state *state)
{
	for (uint32_t i = 0; i < state->n_sent; i++)
		if (batch_at(state, i)->records.n_waiting &&
		    batch_at(state, i)->call.phase == CALL_NONE)
			return batch_at(state, i);
	return NULL;
}

/* > 0: a call was begun; 0: none can be now; -EAGAIN: the time is over. */
static int send_call(struct grpc_state *state, int64_t end_ms)
{
	struct call_batch *batch = find_rest(state);
	enum filling filling;

	if (!may_send(state))
		return 0;
	if (state->retry.distance)
		return send_ahead(state, end_ms);
	if (batch)
		return begin_call(state, batch, 0);
	if (state->n_sent >= state->options.calls)
		return 0;
	batch = batch_at(state, state->n_sent);
	filling = fill_call_batch(state, end_ms);
	if (filling == FILLING_ON)
		return -EAGAIN;
	if (filling == FILLING_EMPTY && !is_due(state, &batch->records))
		return 0;
	state->n_sent++;
	return begin_call(state, batch, 0);
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
	const struct batch *batch = &batch_at(state, state->n_sent)->records;
	int wake_ms = session_rest(&state->session);

	wake_ms = sooner_ms(wake_ms, check_deadlines(state));
	wake_ms = sooner_ms(wake_ms, retry_left_ms(&state->retry));
	if (batch->n && may_send(state) && state->n_sent < state->options.calls)
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
		sent = send_call(state, end_ms);
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
	.types = SINK_TYPE(FLOW) | PBNETOBS_TYPES,
	.otlp_types = OTLP_TYPES,
	.state_size = sizeof(struct grpc_state),
	.open = grpc_open,
	.work = grpc_work,
	.close = grpc_close,
	.counters = grpc_counters,
};
