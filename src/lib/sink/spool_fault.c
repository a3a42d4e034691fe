// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a spool says of a disk that fails: once, and once when that is over. */
#include "spool.h"

#include <string.h>

static bool is_failing(const struct spool_fault *fault)
{
	return fault->append || fault->sync;
}

static const char *name_of(const struct spool *spool)
{
	return spool->options.dir ?: "in memory";
}

static void begin(struct spool *spool, int err)
{
	spool->fault.unwritten = spool->dropped[SPOOL_UNWRITTEN].seq;
	log_error(spool->options.log,
		  "spool %s: cannot write: %s; what comes is kept in memory while it fits, else dropped",
		  name_of(spool), strerror(-err));
}

static void end(struct spool *spool)
{
	uint64_t dropped =
		spool->dropped[SPOOL_UNWRITTEN].seq - spool->fault.unwritten;

	log_info(spool->options.log,
		 "spool %s: can be written to again; %llu records were dropped",
		 name_of(spool), (unsigned long long)dropped);
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

/* What fits into the rest of a buffer proves nothing. */
void spool_note_append(struct spool *spool, int err)
{
	const struct segment *newest = spool->newest;

	if (!err && spool->fault.append &&
	    newest->size - newest->written > newest->buf_size / 2)
		return;
	note(spool, &spool->fault.append, err);
}

/* What was in the way of records may be gone as well: the next one will tell. */
void spool_note_sync(struct spool *spool, int err)
{
	if (!err && spool->newest && spool->newest->fd >= 0 &&
	    spool->newest->size < spool->capacity)
		note(spool, &spool->fault.append, 0);
	note(spool, &spool->fault.sync, err);
}
