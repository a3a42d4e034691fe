/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Marks in a spool on disk: up to which record it was complete when its owner committed
 * something. Records behind the last mark are not read, so that a process that follows one that
 * was killed can remove them, and make them again.
 *
 * A mark survives a kill of the process, and not a crash of the host, which takes with it
 * what the owner committed.
 */
#ifndef NETOBS_SINK_SPOOL_SPOOL_MARKS_H
#define NETOBS_SINK_SPOOL_SPOOL_MARKS_H

#include "spool.h"

/**
 * All records until now belong to commit @number. It is not made before the next mark: so the
 * file has the marks of the last two.
 *
 * @return 0, also of a spool in memory; or -errno: some records are not in a file yet
 */
int spool_mark(struct spool *spool, uint64_t number);

/**
 * Before the first record: remove those behind the mark of @number, and limit the reader from
 * now on. Without such a mark all records stay.
 *
 * @return 0, also of a spool in memory; or -errno: some may be sent a second time
 */
int spool_return_to(struct spool *spool, uint64_t number);

/*
 * Before a record of an owner who commits nothing: return to no mark from before it, or the record
 * would be removed.
 */
void spool_forget_marks(struct spool *spool);

/** @return whether no record follows the last mark */
bool spool_is_at_mark(const struct spool *spool);

/* The last mark has what followed it, too: no process will make it again. */
void spool_extend_mark(struct spool *spool);

/* The reader gets all records again, until the next mark. */
void spool_lift_limit(struct spool *spool);

#endif
