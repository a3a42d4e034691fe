/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Drops are logged when they begin, each minute while they last, and when they end: once
 * no record is pending, or none was dropped for a minute.
 */
#ifndef NETOBS_SINK_DROP_LOG_H
#define NETOBS_SINK_DROP_LOG_H

#include "base/log.h"
#include "sink/spool/spool.h"

#include <stdbool.h>

struct drop_log {
	struct drop_episode {
		uint64_t before; /* records that were dropped before it */
		uint64_t logged; /* and up to the last line */
		int64_t due_ms;	 /* the next line; 0: it is over */
	} episodes[SPOOL_DROPS];
};

/** Call this about twice a second. @name: of the sink. @return whether records are still being dropped */
bool drop_log_note(struct drop_log *drops, const struct log *log,
		   const char *name, const struct spool *spool, int64_t now_ms);

#endif
