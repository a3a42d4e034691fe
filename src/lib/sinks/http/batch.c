// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "batch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- Outcomes ------------------------------------------------------------------- */

enum outcome status_outcome(long status)
{
	if (status >= 200 && status < 300)
		return OUTCOME_ACCEPTED;
	if (status < 400 || status > 499)
		return OUTCOME_WAITING;
	switch (status) {
	case 401: /* Unauthorized */
	case 403: /* Forbidden */
	case 404: /* Not Found */
	case 405: /* Method Not Allowed */
	case 407: /* Proxy Authentication Required */
	case 408: /* Request Timeout */
	case 425: /* Too Early */
	case 429: /* Too Many Requests */
		return OUTCOME_WAITING;
	default:
		return OUTCOME_REFUSED;
	}
}

/* As bulk_answer.take_item(): @arg is the batch. */
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

struct answer_reader http_batch_reader(struct http_batch *batch,
				       enum format_answer answer)
{
	switch (answer) {
	case FORMAT_ANSWERS_ITEMS:
		return (struct answer_reader){ read_items, batch };
	case FORMAT_ANSWERS_COUNT:
		return (struct answer_reader){ read_whole, batch };
	default:
		return (struct answer_reader){ NULL, batch };
	}
}

/* ---- Bodies --------------------------------------------------------------------- */

/* Records of a stream side by side, in the order in which they came. */
static int compare_streams(const void *a, const void *b, void *arg)
{
	const struct batch *batch = arg;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	uint32_t left_stream = batch->entries[left].stream;
	uint32_t right_stream = batch->entries[right].stream;

	if (left_stream != right_stream)
		return left_stream < right_stream ? -1 : 1;
	return left < right ? -1 : 1;
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

int http_batch_make_body(struct http_batch *batch, const struct format *format,
			 struct packer *packer)
{
	struct batch *records = &batch->records;

	batch_try(records, 0, batch->limit);
	batch->n_answered = batch->n_accepted = batch->n_refused = 0;
	batch->reason[0] = '\0';
	bulk_answer_begin(&batch->bulk, take_bulk_item, batch);
	batch->answer.len = 0;
	if (format->encoding->has_streams)
		qsort_r(records->tried, records->n_tried,
			sizeof(*records->tried), compare_streams, records);
	if (!format_body(format, records, &batch->body))
		return -ENOMEM;
	return pack_body(batch, packer);
}

void http_batch_clear(struct http_batch *batch)
{
	batch_clear(&batch->records);
	batch->due_ms = 0;
	batch->is_probed = false;
}

void http_batch_free(struct http_batch *batch)
{
	batch_free(&batch->records);
	buffer_free(&batch->body);
	buffer_free(&batch->answer);
}
