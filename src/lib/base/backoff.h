/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * How long to wait before something that failed is tried again: twice as long after
 * each failure, up to a maximum, and less by up to a quarter, at random, since many
 * hosts may have lost the same collector. All zero: from 1 to 3 seconds, and nothing
 * has failed.
 */
#ifndef NETOBS_BASE_BACKOFF_H
#define NETOBS_BASE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

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
