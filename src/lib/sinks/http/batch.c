// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "batch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SIZE_MIN = 256 };

bool batch_has_room(const struct batch *batch, size_t len, size_t bytes,
		    uint32_t records)
{
	if (!batch->n)
		return true;
	return batch->n < records && batch->text.len + len <= bytes;
}

static bool grow_entries(struct batch *batch)
{
	uint32_t size = batch->size ? 2 * batch->size : SIZE_MIN;
	struct entry *entries =
		reallocarray(batch->entries, size, sizeof(*entries));
	uint32_t *tried;

	if (!entries)
		return false;
	batch->entries = entries;
	tried = reallocarray(batch->tried, size, sizeof(*tried));
	if (!tried)
		return false;
	batch->tried = tried;
	batch->size = size;
	return true;
}

bool batch_reserve(struct batch *batch, size_t len)
{
	return (batch->n < batch->size || grow_entries(batch)) &&
	       buffer_reserve(&batch->text, len);
}

void batch_add(struct batch *batch, const char *text, size_t len,
	       uint32_t stream, struct position end, uint32_t items)
{
	size_t at = batch->text.len;

	buffer_add(&batch->text, text, len);
	batch->entries[batch->n++] = (struct entry){
		.at = at, .len = len, .stream = stream, .items = items, .end = end
	};
	batch->limit = ++batch->n_waiting;
}

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

static void decide_entry(struct batch *batch, uint32_t i, enum outcome outcome)
{
	struct entry *entry = &batch->entries[batch->tried[i]];

	if (entry->outcome != OUTCOME_WAITING)
		return;
	entry->outcome = outcome;
	batch->n_waiting -= outcome != OUTCOME_WAITING;
}

void batch_decide(struct batch *batch, enum outcome outcome)
{
	for (uint32_t i = 0; i < batch->n_tried; i++)
		decide_entry(batch, i, outcome);
}

uint32_t batch_decide_count(struct batch *batch, uint64_t items)
{
	uint32_t n_refused = 0;

	for (uint32_t i = batch->n_tried; i-- > 0;) {
		const struct entry *entry = &batch->entries[batch->tried[i]];

		n_refused += items > 0;
		decide_entry(batch, i,
			     items ? OUTCOME_REFUSED : OUTCOME_ACCEPTED);
		items -= min_u64(items, entry->items);
	}
	return n_refused;
}

/* As bulk_answer.take_item(): @arg is the batch. */
static void take_bulk_item(void *arg, int status, const char *reason)
{
	struct batch *batch = arg;
	enum outcome outcome = status_outcome(status);

	if (batch->n_answered == batch->n_tried)
		return;
	decide_entry(batch, batch->n_answered++, outcome);
	batch->n_accepted += outcome == OUTCOME_ACCEPTED;
	batch->n_refused += outcome == OUTCOME_REFUSED;
	if (outcome != OUTCOME_ACCEPTED && !*batch->reason)
		snprintf(batch->reason, sizeof(batch->reason), "%d: %.200s",
			 status, reason);
}

static void read_items(void *ctx, const char *bytes, size_t len)
{
	struct batch *batch = ctx;

	bulk_answer_read(&batch->bulk, bytes, len);
}

/* Without memory, the answer is cut off, and so no answer. */
static void read_whole(void *ctx, const char *bytes, size_t len)
{
	struct batch *batch = ctx;

	buffer_add(&batch->answer, bytes, len);
}

struct answer_reader batch_reader(struct batch *batch, enum format_answer answer)
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

static void choose_tried(struct batch *batch)
{
	batch->n_tried = 0;
	for (uint32_t i = batch->n_settled;
	     i < batch->n && batch->n_tried < batch->limit; i++)
		if (batch->entries[i].outcome == OUTCOME_WAITING)
			batch->tried[batch->n_tried++] = i;
}

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

static bool join_tried(struct batch *batch, const struct format *format)
{
	cleanup_free struct format_part *parts =
		calloc(batch->n_tried, sizeof(*parts));

	if (!parts)
		return false;
	if (format->encoding->has_streams)
		qsort_r(batch->tried, batch->n_tried, sizeof(*batch->tried),
			compare_streams, batch);
	for (uint32_t i = 0; i < batch->n_tried; i++) {
		const struct entry *entry = &batch->entries[batch->tried[i]];

		parts[i] = (struct format_part){ batch->text.bytes + entry->at,
						 entry->len, entry->stream };
	}
	return format_body(format, parts, batch->n_tried, &batch->body);
}

static int pack_body(struct batch *batch, struct packer *packer)
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

int batch_make_body(struct batch *batch, const struct format *format,
		    struct packer *packer)
{
	choose_tried(batch);
	batch->n_answered = batch->n_accepted = batch->n_refused = 0;
	batch->reason[0] = '\0';
	bulk_answer_begin(&batch->bulk, take_bulk_item, batch);
	batch->answer.len = 0;
	if (!join_tried(batch, format))
		return -ENOMEM;
	return pack_body(batch, packer);
}

/* ---- Settling -------------------------------------------------------------------- */

static void settle_entry(const struct entry *entry, struct sink_host *host)
{
	if (entry->outcome == OUTCOME_ACCEPTED)
		host->ops->ack(host, entry->end);
	else
		host->ops->refuse(host, entry->end);
}

void batch_settle(struct batch *batch, struct sink_host *host)
{
	while (batch->n_settled < batch->n) {
		const struct entry *entry = &batch->entries[batch->n_settled];
		bool is_last = ++batch->n_settled == batch->n;

		if (entry->outcome == OUTCOME_WAITING) {
			batch->n_settled--;
			return;
		}
		/* The last of several with the same outcome speaks for them. */
		if (is_last || entry[1].outcome != entry->outcome)
			settle_entry(entry, host);
	}
}

void batch_clear(struct batch *batch)
{
	batch->text.len = 0;
	batch->n = batch->n_waiting = batch->n_settled = batch->limit = 0;
	batch->n_tried = 0;
	batch->due_ms = 0;
	batch->is_probed = false;
}

void batch_free(struct batch *batch)
{
	buffer_free(&batch->text);
	buffer_free(&batch->body);
	buffer_free(&batch->answer);
	free(batch->entries);
	free(batch->tried);
	*batch = (struct batch){ 0 };
}
