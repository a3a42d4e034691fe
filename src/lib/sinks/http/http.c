// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Records to an HTTP server, in batches: a POST request takes one, and a status of 2xx is
 * its acknowledgement. A few requests may be open at a time. A batch keeps its text until
 * the outcome of all its records is known, so that it can be sent again, or in parts.
 */
#include "base/clock_ms.h"
#include "base/outage.h"
#include "http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	SLICE_MS = 5, /* time of work, then the caller has its turn */
	/* The batches that are sent, the one that is filled, and one for what it had no room for. */
	BATCHES = HTTP_REQUESTS_MAX + 2,
	REFUSALS_END_MS = 60 * 1000, /* without one, the next is logged again */
};

/* A batch and its requests. */
struct http_batch {
	struct batch records;
	int64_t due_ms;	     /* not before this time */
	struct buffer body;  /* of the attempt */
	uint32_t n_answered; /* tried records with an answer, in a bulk answer */
	uint32_t n_accepted, n_refused;
	char reason[BULK_TEXT_MAX]; /* reason for the first record that was refused, or not accepted */
	struct bulk_answer bulk;
	struct buffer answer; /* the whole answer, for FORMAT_ANSWERS_COUNT */
	struct request request;
};

struct http {
	struct sink_host *host;
	struct http_options options;
	struct packer packer;
	struct transfer transfer;
	bool is_global; /* libcurl's globals are in use */

	struct http_batch batches[BATCHES]; /* a ring */
	uint32_t first, n_sent; /* batches sent; the next one is being filled */
	size_t batch_bytes; /* less than the option if the server refuses larger ones */
	int64_t fill_ms;	 /* when that began */
	bool is_urgent;		 /* send it as it is */
	uint32_t refused_in_row; /* records that were refused alone */
	struct backoff backoff; /* failures: requests, since one was accepted */
	struct outage outage, refusals;
	int64_t refused_ms; /* when the last refusal was reported */
	uint64_t requests, failed_requests, sent_bytes;
	char record[FORMAT_ROOM];
};

static struct http_batch *batch_at(struct http *http, uint32_t i)
{
	return &http->batches[(http->first + i) % BATCHES];
}

/* ---- Requests of a batch ---------------------------------------------------------- */

/* Implements bulk_answer.take_item(). @arg: the batch */
static void take_bulk_item(void *arg, int status, const char *reason)
{
	struct http_batch *batch = arg;
	enum outcome outcome = status_outcome(status);

	if (batch->n_answered == batch->records.n_tried)
		return;
	batch_decide_one(&batch->records, batch->n_answered++, outcome);
	batch->n_accepted += outcome == OUTCOME_ACCEPTED;
	batch->n_refused += outcome == OUTCOME_REFUSED;
	if (outcome != OUTCOME_ACCEPTED && !*batch->reason)
		snprintf(batch->reason, sizeof(batch->reason), "%d: %.200s",
			 status, reason);
}

static void read_items(void *ctx, const char *bytes, size_t len)
{
	struct http_batch *batch = ctx;

	bulk_answer_read(&batch->bulk, bytes, len);
}

/* Without memory, the answer is cut off, and so no answer. */
static void read_whole(void *ctx, const char *bytes, size_t len)
{
	struct http_batch *batch = ctx;

	buffer_add(&batch->answer, bytes, len);
}

static int pack_body(struct http_batch *batch, struct packer *packer)
{
	const char *bytes;
	ssize_t len = packer_pack_body(packer, batch->body.bytes,
				       batch->body.len, &bytes);

	if (len < 0)
		return (int)len;
	if (bytes == batch->body.bytes)
		return 0;
	batch->body.len = 0;
	return buffer_add(&batch->body, bytes, (size_t)len) ? 0 : -ENOMEM;
}

static int http_batch_make_body(struct http_batch *batch,
				const struct format *format,
				struct packer *packer)
{
	batch_try(&batch->records);
	batch->n_answered = batch->n_accepted = batch->n_refused = 0;
	batch->reason[0] = '\0';
	bulk_answer_begin(&batch->bulk, take_bulk_item, batch);
	batch->answer.len = 0;
	if (!format_body(format, &batch->records, &batch->body))
		return -ENOMEM;
	return pack_body(batch, packer);
}

/* ---- Opening ------------------------------------------------------------------- */

static void http_close(void *arg)
{
	struct http *http = arg;

	for (uint32_t i = 0; i < BATCHES; i++) {
		request_close(&http->batches[i].request, &http->transfer);
		batch_free(&http->batches[i].records);
		buffer_free(&http->batches[i].body);
		buffer_free(&http->batches[i].answer);
	}
	transfer_close(&http->transfer);
	packer_close(&http->packer);
	http_options_free(&http->options);
	if (http->is_global)
		curl_global_cleanup();
}

static int open_requests(struct http *http)
{
	static void (*const readers[])(void *ctx, const char *bytes,
				       size_t len) = {
		[FORMAT_ANSWERS_NOTHING] = NULL,
		[FORMAT_ANSWERS_ITEMS] = read_items,
		[FORMAT_ANSWERS_COUNT] = read_whole,
	};
	int err = transfer_open(&http->transfer, http->host);

	for (uint32_t i = 0; !err && i < BATCHES; i++) {
		struct http_batch *batch = &http->batches[i];
		const struct answer_reader reader = {
			readers[http->options.format.encoding->answer], batch
		};

		err = request_open(&batch->request, &http->options, &reader,
				   http->host->log);
	}
	return err;
}

static int http_open(struct spec *spec, struct sink_host *host, void *arg)
{
	struct http *http = arg;
	int err = curl_global_init(CURL_GLOBAL_DEFAULT) ? -ENOMEM : 0;

	http->host = host;
	host->outage = &http->outage;
	http->is_global = !err;
	err = err ?: http_options_read(&http->options, spec, host->types);
	/* A trial, which ends in spec_finish(), sees whether there is the compressor. */
	if (!err)
		err = packer_open(&http->packer, &http->options.packer,
				  host->log);
	http->batch_bytes = http->options.batch_bytes;
	return err ?: spec_finish(spec) ?: open_requests(http);
}

/* ---- Answers -------------------------------------------------------------------- */

/* Failures of the same @cause are logged once. */
static void report_failure(struct http *http, const char *cause,
			   const char *reason, const char *answer)
{
	outage_log(&http->outage, http->host->log, NETOBS_LOG_ERROR, cause,
		   "%s does not accept records: %s%s%s; trying again",
		   http->options.name, reason, *answer ? ": " : "", answer);
}

/* Refusals and acceptance take turns: what ends them is time. */
static void note_refusal(struct http *http)
{
	if (now_ms() - http->refused_ms >= REFUSALS_END_MS)
		http->refusals = (struct outage){ 0 };
	http->refused_ms = now_ms();
}

static void report_warning(struct http *http, const char *message)
{
	note_refusal(http);
	outage_log(&http->refusals, http->host->log, NETOBS_LOG_WARNING,
		   "warning", "%s accepts records with a warning: %s",
		   http->options.name, message);
}

static void report_refusal(struct http *http, uint32_t n, const char *reason,
			   const char *answer)
{
	note_refusal(http);
	outage_log(&http->refusals, http->host->log, NETOBS_LOG_ERROR, reason,
		   "%s refuses records permanently: %s%s%s; %u %s dropped",
		   http->options.name, reason, *answer ? ": " : "", answer, n,
		   n == 1 ? "is" : "are");
}

static void describe_status(const struct request *request, char text[32])
{
	snprintf(text, 32, "HTTP status %ld", request->status);
}

/* Requests that fail at the same time are one failure. */
static void wait_to_repeat(struct http *http, struct http_batch *batch,
			   int64_t least_ms)
{
	http->failed_requests++;
	if (backoff_is_due(&http->backoff))
		backoff_wait(&http->backoff, now_ms());
	http->backoff.due_ms = max_i64(http->backoff.due_ms, now_ms() + least_ms);
	batch->due_ms = http->backoff.due_ms;
}

/* A failed batch waits to be sent again. */
static bool is_any_failing(struct http *http)
{
	for (uint32_t i = 0; i < http->n_sent; i++)
		if (batch_at(http, i)->due_ms)
			return true;
	return false;
}

static void note_accepted(struct http *http, struct http_batch *batch)
{
	batch_grow(&batch->records);
	batch->due_ms = 0;
	http->refused_in_row = 0;
	if (is_any_failing(http))
		return;
	backoff_reset(&http->backoff);
	outage_end(&http->outage, http->host->log, NETOBS_LOG_INFO,
		   "%s accepts records again", http->options.name);
}

/* Later batches are smaller as well. */
static void make_smaller(struct http *http, struct http_batch *batch)
{
	batch_shrink(&batch->records, &http->batch_bytes, HTTP_BATCH_MIN);
}

static void take_refusal(struct http *http, struct http_batch *batch)
{
	const struct request *request = &batch->request;
	char reason[32];

	http->failed_requests++;
	if (batch->records.n_tried > 1 && request->status == 413) {
		make_smaller(http, batch);
		return;
	}
	if (!batch_refuse(&batch->records, &http->refused_in_row))
		return;
	describe_status(request, reason);
	report_refusal(http, batch->records.n_tried, reason, request->answer);
}

static void take_failure(struct http *http, struct http_batch *batch)
{
	const struct request *request = &batch->request;
	char reason[32];

	if (request->is_late)
		make_smaller(http, batch);
	if (request->is_cut)
		batch->records.limit = (batch->records.n_tried + 1) / 2;
	wait_to_repeat(http, batch, request->retry_ms);
	if (!request->status) {
		report_failure(http, request->cause, request->error, "");
		return;
	}
	describe_status(request, reason);
	report_failure(http, reason, reason, request->answer);
}

/* Each record has a status of its own; those that are missing are sent again. */
static void take_bulk(struct http *http, struct http_batch *batch)
{
	if (!batch->bulk.is_answer) {
		wait_to_repeat(http, batch, 0);
		report_failure(http, "format", "the answer is not that of _bulk",
			       batch->request.answer);
		return;
	}
	if (!batch->bulk.has_errors && !batch->n_answered) {
		batch_decide(&batch->records, OUTCOME_ACCEPTED);
		note_accepted(http, batch);
		return;
	}
	if (batch->n_accepted + batch->n_refused == batch->records.n_tried) {
		note_accepted(http, batch);
		return;
	}
	wait_to_repeat(http, batch, batch->request.retry_ms);
	report_failure(http, "items", "items of _bulk", batch->reason);
}

/* An answer may also have a warning alone. */
static void take_count(struct http *http, struct http_batch *batch)
{
	struct otlp_answer answer;
	uint32_t n;

	if (!otlp_read_answer(batch->answer.bytes, batch->answer.len, &answer)) {
		wait_to_repeat(http, batch, 0);
		report_failure(http, "format", "the answer is not that of OTLP",
			       batch->request.answer);
		return;
	}
	n = batch_decide_count(&batch->records, answer.rejected);
	if (n)
		report_refusal(http, n, "partial success", answer.message);
	else if (*answer.message)
		report_warning(http, answer.message);
	note_accepted(http, batch);
}

static void take_success(struct http *http, struct http_batch *batch)
{
	switch (http->options.format.encoding->answer) {
	case FORMAT_ANSWERS_ITEMS:
		take_bulk(http, batch);
		break;
	case FORMAT_ANSWERS_COUNT:
		take_count(http, batch);
		break;
	case FORMAT_ANSWERS_NOTHING:
		batch_decide(&batch->records, OUTCOME_ACCEPTED);
		note_accepted(http, batch);
		break;
	}
}

static void take_answer(struct http *http, struct http_batch *batch)
{
	batch->request.phase = REQUEST_NONE;
	if (batch->n_refused)
		report_refusal(http, batch->n_refused, "items of _bulk",
			       batch->reason);
	switch (status_outcome(batch->request.status)) {
	case OUTCOME_WAITING:
		take_failure(http, batch);
		break;
	case OUTCOME_REFUSED:
		take_refusal(http, batch);
		break;
	case OUTCOME_ACCEPTED:
		take_success(http, batch);
		break;
	}
}

/* Take answers from the oldest on, as an acknowledgement covers all earlier records. */
static void take_answers(struct http *http)
{
	for (uint32_t i = 0; i < http->n_sent; i++)
		if (batch_at(http, i)->request.phase == REQUEST_ENDED)
			take_answer(http, batch_at(http, i));
	while (http->n_sent) {
		struct http_batch *batch = batch_at(http, 0);

		batch_settle(&batch->records, http->host);
		/* A bulk answer may continue after its last item. */
		if (batch->records.n_waiting ||
		    batch->request.phase == REQUEST_OPEN)
			break;
		batch_clear(&batch->records);
		batch->due_ms = 0;
		http->first = (http->first + 1) % BATCHES;
		http->n_sent--;
	}
}

/* ---- Sending -------------------------------------------------------------------- */

static bool is_any_open(struct http *http)
{
	for (uint32_t i = 0; i < http->n_sent; i++)
		if (batch_at(http, i)->request.phase == REQUEST_OPEN)
			return true;
	return false;
}

static bool start_request(struct http *http, struct http_batch *batch)
{
	int err = http_batch_make_body(batch, &http->options.format,
				       &http->packer);

	if (!err)
		err = request_start(&batch->request, &http->transfer,
				    batch->body.bytes, batch->body.len,
				    batch->records.n_tried);
	if (err) {
		wait_to_repeat(http, batch, 0);
		report_failure(http, "memory", strerror(-err), "");
		return false;
	}
	http->requests++;
	http->sent_bytes += batch->body.len;
	return true;
}

/* @return the oldest batch that is not being sent; NULL: none */
static struct http_batch *find_rest(struct http *http)
{
	for (uint32_t i = 0; i < http->n_sent; i++)
		if (batch_at(http, i)->records.n_waiting &&
		    batch_at(http, i)->request.phase == REQUEST_NONE)
			return batch_at(http, i);
	return NULL;
}

/* Send the rest of a batch again; one batch at a time while it is likely to fail. */
static bool send_again(struct http *http)
{
	struct http_batch *batch = find_rest(http);

	if (!batch || (http->backoff.failures && is_any_open(http)))
		return false;
	return now_ms() >= batch->due_ms && start_request(http, batch);
}

/* Nothing waits for an answer or to be sent again. */
static bool may_send_new(struct http *http)
{
	if (http->backoff.failures && !http->n_sent &&
	    backoff_is_due(&http->backoff))
		backoff_reset(&http->backoff);
	return !http->backoff.failures && http->n_sent < http->options.requests;
}

/* True: the batch is full. */
static bool take_item(struct http *http, struct http_batch *batch,
		      const struct sink_item *item)
{
	struct http_batch *next = batch_at(http, http->n_sent + 1);
	uint32_t n = batch->records.n;
	size_t len =
		format_record(&http->options.format, item->record, http->record);
	bool has_room = !n ||
			(n < http->options.batch_records &&
			 batch->records.text.len + len <= http->batch_bytes);
	struct batch *to = has_room ? &batch->records : &next->records;

	if (!n)
		http->fill_ms = now_ms();
	memcpy(batch_room(to), http->record, len);
	batch_add(to, len, item->record->type, item->end,
		  format_items(&http->options.format, item->record));
	return !has_room;
}

/* Memory is reserved first: a record that was read cannot be put back. */
static bool has_memory(struct http *http)
{
	struct http_batch *batch = batch_at(http, http->n_sent);

	if (batch_reserve(&batch->records, FORMAT_ROOM) &&
	    batch_reserve(&batch_at(http, http->n_sent + 1)->records, FORMAT_ROOM))
		return true;
	wait_to_repeat(http, batch, 0);
	report_failure(http, "memory", strerror(ENOMEM), "");
	return false;
}

/* @return whether to send the batch now */
static bool fill_http_batch(struct http *http, struct http_batch *batch)
{
	struct sink_host *host = http->host;
	struct sink_item item;

	while (has_memory(http) && host->ops->next(host, &item))
		if (take_item(http, batch, &item))
			return true;
	if (!batch->records.n)
		http->is_urgent &= host->ops->has_more(host);
	if (!batch->records.n || host->ops->is_out_of_time(host))
		return false;
	/* The next record may have to wait until those of this batch are acknowledged. */
	return http->is_urgent || host->ops->has_more(host) ||
	       now_ms() - http->fill_ms >= http->options.batch_delay_ms;
}

/* False: there is nothing to be sent, or it may not be sent now. */
static bool send_new(struct http *http)
{
	struct http_batch *batch = batch_at(http, http->n_sent);

	if (!may_send_new(http) || !fill_http_batch(http, batch))
		return false;
	http->n_sent++;
	http->fill_ms = now_ms();
	batch->records.limit = batch->records.n;
	return start_request(http, batch);
}

/* ---- Use ------------------------------------------------------------------------ */

static bool is_any_paused(struct http *http)
{
	for (uint32_t i = 0; i < http->n_sent; i++)
		if (batch_at(http, i)->request.is_paused)
			return true;
	return false;
}

static void run_requests(struct http *http, int64_t end_ms)
{
	for (uint32_t i = 0; i < http->n_sent; i++)
		request_resume(&batch_at(http, i)->request, &http->transfer,
			       end_ms);
	transfer_run(&http->transfer, end_ms);
}

/* The earliest time at which a request may be sent. */
static int next_wake_ms(struct http *http)
{
	const struct http_batch *rest = find_rest(http);
	int ms = is_any_paused(http) ? 0 : transfer_rest(&http->transfer);

	if (rest && !(http->backoff.failures && is_any_open(http)))
		ms = sooner_ms(ms, left_ms(rest->due_ms));
	if (http->backoff.failures && !http->n_sent)
		ms = sooner_ms(ms, backoff_left_ms(&http->backoff));
	if (may_send_new(http) && batch_at(http, http->n_sent)->records.n)
		ms = sooner_ms(ms, left_ms(http->fill_ms +
					   http->options.batch_delay_ms));
	return ms;
}

static int http_work(void *arg, bool flush)
{
	struct http *http = arg;
	int64_t end_ms = now_ms() + SLICE_MS;
	bool has_sent = true;

	http->is_urgent |= flush;
	while (has_sent && now_ms() < end_ms) {
		run_requests(http, end_ms);
		take_answers(http);
		has_sent = send_again(http) || send_new(http);
	}
	http->host->ops->wake_in(http->host, has_sent ? 0 : next_wake_ms(http));
	return 0;
}

static void http_counters(const void *arg, sink_counter_fn *take, void *ctx)
{
	const struct http *http = arg;

	take(ctx, "requests", http->requests);
	take(ctx, "failed_requests", http->failed_requests);
	take(ctx, "sent_bytes", http->sent_bytes);
}

__attribute__((visibility("default")))
const struct sink_module netobs_sink_module = {
	.version = NETOBS_VERSION,
	.types = SINK_TYPES_ALL,
	.otlp_types = OTLP_TYPES,
	.state_size = sizeof(struct http),
	.open = http_open,
	.work = http_work,
	.close = http_close,
	.counters = http_counters,
};
