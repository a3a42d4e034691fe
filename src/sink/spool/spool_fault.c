// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a spool says of a disk that fails: once, and once when that is over. */
#include "spool.h"

#include "base/util.h"

#include <string.h>

static bool is_failing(const struct spool_fault *fault)
{
	return fault->append || fault->sync;
}

static void begin(struct spool *spool, int err)
{
	spool->fault.unwritten = spool->dropped[SPOOL_UNWRITTEN].seq;
	log_warning(spool->options.log,
		    "spool %s: cannot write: %s; new records are kept in memory, or dropped if they do not fit",
		    spool_name(spool), strerror(-err));
}

static void end(struct spool *spool)
{
	uint64_t dropped =
		spool->dropped[SPOOL_UNWRITTEN].seq - spool->fault.unwritten;

	log_warning(spool->options.log,
		    "spool %s: can be written to again; %llu records were dropped",
		    spool_name(spool), (unsigned long long)dropped);
}

static void note(struct spool *spool, int *last, int err)
{
	bool was_failing = is_failing(&spool->fault);

	*last = err;
	if (err && !was_failing)
		begin(spool, err);
	if (was_failing && !is_failing(&spool->fault))
		end(spool);
}

/* Smaller ones that still fit somewhere prove nothing. */
static bool has_room_again(const struct spool *spool)
{
	const struct segment *newest = spool->newest;
	uint64_t cost = spool->fault.cost;

	return newest && newest->fd >= 0 && !newest->is_closed &&
	       newest->size + cost <= spool->capacity &&
	       newest->size - newest->written + cost <= newest->buf_size;
}

void spool_note_append(struct spool *spool, int err, size_t len)
{
	if (err)
		spool->fault.cost = max_u64(spool->fault.cost, segment_cost(len));
	else if (!spool->fault.append || !has_room_again(spool))
		return;
	else
		spool->fault.cost = 0;
	note(spool, &spool->fault.append, err);
}

/* What was in the way of records may be gone by it. */
void spool_note_sync(struct spool *spool, int err)
{
	note(spool, &spool->fault.sync, err);
	if (!err)
		spool_note_append(spool, 0, 0);
}
