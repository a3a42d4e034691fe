// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "batch.h"

#include <stdlib.h>

enum {
	SIZE_MIN = 256,
	/* After so many single records in a row, whole batches are refused at once. */
	REFUSED_MAX = 64,
};

bool batch_reserve(struct batch *batch, size_t len)
{
	uint32_t size = batch->size;

	return array_reserve(&batch->tried, batch->n, &size,
			     sizeof(*batch->tried), SIZE_MIN) &&
	       array_reserve(&batch->entries, batch->n, &batch->size,
			     sizeof(*batch->entries), SIZE_MIN) &&
	       buffer_reserve(&batch->text, len);
}

void batch_add(struct batch *batch, size_t len, uint32_t type,
	       struct position end, uint32_t items)
{
	batch->entries[batch->n++] = (struct entry){ .at = batch->text.len,
						     .len = len,
						     .type = type,
						     .items = items,
						     .end = end };
	batch->text.len += len;
	batch->n_waiting++;
}

void batch_try(struct batch *batch)
{
	batch->n_tried = 0;
	for (uint32_t i = batch->n_settled;
	     i < batch->n && batch->n_tried < batch->limit; i++)
		if (batch->entries[i].outcome == OUTCOME_WAITING)
			batch->tried[batch->n_tried++] = i;
}

size_t batch_tried_bytes(const struct batch *batch)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < batch->n_tried; i++)
		sum += batch_tried(batch, i)->len;
	return sum;
}

void batch_decide_one(struct batch *batch, uint32_t i, enum outcome outcome)
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
		batch_decide_one(batch, i, outcome);
}

uint32_t batch_decide_count(struct batch *batch, uint64_t items)
{
	uint32_t n_refused = 0;

	for (uint32_t i = batch->n_tried; i-- > 0;) {
		n_refused += items > 0;
		batch_decide_one(batch, i,
				 items ? OUTCOME_REFUSED : OUTCOME_ACCEPTED);
		items -= min_u64(items, batch_tried(batch, i)->items);
	}
	return n_refused;
}

static void halve_attempt(struct batch *batch)
{
	batch->limit = (batch->n_tried + 1) / 2;
}

bool batch_refuse(struct batch *batch, uint32_t *in_row)
{
	bool are_many = *in_row >= REFUSED_MAX;

	if (batch->n_tried > 1 && !(are_many && batch->is_probed)) {
		halve_attempt(batch);
		if (are_many)
			batch->limit = 1;
		return false;
	}
	batch_decide(batch, OUTCOME_REFUSED);
	batch->is_probed = true;
	batch->limit = ++*in_row < REFUSED_MAX ? 1 : batch->n;
	return true;
}

void batch_shrink(struct batch *batch, size_t *max_bytes, size_t least_bytes)
{
	const size_t tried = batch_tried_bytes(batch);

	halve_attempt(batch);
	if (tried > *max_bytes / 2)
		*max_bytes = max_u64(min_u64(*max_bytes, tried / 2), least_bytes);
}

void batch_grow(struct batch *batch)
{
	batch->limit = (uint32_t)min_u64(2ULL * batch->limit, batch->n);
}

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
	batch->n = batch->n_waiting = batch->n_settled = batch->n_tried = 0;
	batch->is_probed = false;
}

void batch_free(struct batch *batch)
{
	buffer_free(&batch->text);
	free(batch->entries);
	free(batch->tried);
	*batch = (struct batch){ 0 };
}
