/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Logs an outage: each of its reasons once, however often they take turns, and its
 * end with how long it lasted. All zero: there is none.
 */
#ifndef NETOBS_BASE_OUTAGE_H
#define NETOBS_BASE_OUTAGE_H

#include "log.h"

#include <stdbool.h>
#include <stdint.h>

enum { OUTAGE_REASONS = 8 }; /* further ones are not logged */

struct outage {
	uint64_t logged[OUTAGE_REASONS]; /* hashes of the reasons */
	unsigned int n;			 /* 0: there is no outage */
	int64_t began_ms;
};

/* Log a line at @level unless @reason was logged since the outage began. */
__attribute__((format(printf, 5, 6))) void
outage_log(struct outage *outage, const struct log *log, int level,
	   const char *reason, const char *format, ...);

/* Log a line at @level, with the length of the outage behind, if there is one. */
__attribute__((format(printf, 4, 5))) void outage_end(struct outage *outage,
						      const struct log *log,
						      int level,
						      const char *format, ...);

/*
 * The outage of a file: log the first error and the end, as warnings.
 * @param err  0, or the -errno that writing to @name failed with
 */
void outage_note(struct outage *outage, const struct log *log, const char *name,
		 int err);

static inline bool outage_is_on(const struct outage *outage)
{
	return outage->n;
}

#endif
