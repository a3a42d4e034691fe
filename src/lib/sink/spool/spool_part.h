/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Between the parts of a spool. */
#ifndef NETOBS_SINK_SPOOL_SPOOL_PART_H
#define NETOBS_SINK_SPOOL_SPOOL_PART_H

#include "spool.h"

void spool_drop(struct spool *spool, enum spool_drop why, struct position what);

/* Remove segments that are acknowledged, except for the newest. */
void spool_remove_acked(struct spool *spool);

/*
 * Drop the records between @from and @end. Those that the reader got, and has not
 * acknowledged, become unacked_dropped.
 */
void spool_release(struct spool *spool, struct position from,
		   struct position end, enum spool_drop why);

/* The result of the last attempt to sync; 0: it succeeded. */
void spool_note_sync(struct spool *spool, int err);

/* Have all records in files, as far as that can be. @return 0, or -errno */
int spool_write_out(struct spool *spool);

/* Compute spool->durable from the segments. */
void spool_find_durable(struct spool *spool);

/* For a worker: one piece of work of a sync. */
void sync_work_free(void *work);
void sync_work_do(void *work);

#endif
