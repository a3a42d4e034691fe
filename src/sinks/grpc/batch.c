// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "batch.h"

#include "util.h"

#include <stdlib.h>

enum { FIRST_SIZE = 64 << 10 };

/* Twice as large each time: few hosts have as many flows as would fill it. */
static bool grow(struct batch *batch, size_t size)
{
	uint8_t *bytes;

	size = max_u64(size, max_u64(2 * batch->size, FIRST_SIZE));
	bytes = realloc(batch->bytes, size);
	if (!bytes)
		return false;
	batch->bytes = bytes;
	batch->size = size;
	return true;
}

bool batch_has_room(struct batch *batch, size_t max_bytes)
{
	size_t used = max_u64(batch->len, SESSION_PREFIX);
	size_t needed = used + PBFLOW_ENTRY_MAX;

	if (needed > SESSION_PREFIX + max_bytes)
		return false;
	return needed <= batch->size || grow(batch, needed);
}

void batch_add(struct batch *batch, const struct sink_item *item,
	       const struct pbflow_options *options)
{
	if (!batch->len)
		batch->len = SESSION_PREFIX;
	batch->len +=
		pbflow_entry(item->flow, options, batch->bytes + batch->len);
	batch->end = item->end;
	batch->n_records++;
}

void batch_clear(struct batch *batch)
{
	batch->len = 0;
	batch->n_records = 0;
	batch->call = (struct call){ 0 };
}

void batch_free(struct batch *batch)
{
	free(batch->bytes);
	*batch = (struct batch){ 0 };
}
