/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Outages: when to try again, and what to log meanwhile. */
#ifndef NETOBS_BASE_OUTAGE_H
#define NETOBS_BASE_OUTAGE_H

#include "log.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Logs an outage: each of its reasons once, however often they take turns, and its
 * end with how long it lasted. All zero: there is none.
 */

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

/*
 * The delay before something that failed is tried again: twice as long after
 * each failure, up to a maximum, and less by up to a quarter, at random, since many
 * hosts may have lost the same collector. All zero: from 1 to 3 seconds, and nothing
 * has failed.
 */

enum { BACKOFF_FIRST_MS = 1000, BACKOFF_MOST_MS = 3000 };

struct backoff {
	uint32_t first_ms, most_ms; /* 0: as above */
	uint32_t failures;	    /* in a row */
	int64_t due_ms;		    /* not before this time; 0: at once */
};

/* The delay after @failures. */
uint32_t backoff_delay_ms(const struct backoff *backoff, uint32_t failures);

/* An attempt that began at @from_ms has failed: when it is due again. */
void backoff_wait(struct backoff *backoff, int64_t from_ms);

bool backoff_is_due(const struct backoff *backoff);

/* @return milliseconds until the next attempt; -1: none is planned */
int backoff_left_ms(const struct backoff *backoff);

/* Call after success. */
void backoff_reset(struct backoff *backoff);

#endif
