/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What to do after a call that failed: wait, or try less at a time, until what the
 * collector does not take is one record alone.
 */
#ifndef NETOBS_SINKS_GRPC_RETRY_H
#define NETOBS_SINKS_GRPC_RETRY_H

#include <stdbool.h>
#include <stdint.h>

struct retry {
	uint32_t limit;	      /* records in a batch */
	uint32_t usual;	      /* the same, where none is suspect */
	uint64_t suspect_seq; /* before this one there is one that is refused */
	uint32_t failures;    /* one after the other */
	int64_t due_ms;	      /* not earlier; 0: at once */
};

/* Nothing is known of the collector. */
void retry_reset(struct retry *retry);

/* Again a while after a call that began at @begun_ms; that grows. */
void retry_later(struct retry *retry, int64_t begun_ms);

/*
 * Half of @n_records, which end at @end_seq. @is_size: it is not what they are, but
 * how many.
 */
void retry_with_less(struct retry *retry, uint32_t n_records, uint64_t end_seq,
		     bool is_size);

/* The record that was alone is out of the way. */
void retry_refused(struct retry *retry);

/* All up to @end_seq was taken. */
void retry_succeeded(struct retry *retry, uint64_t end_seq);

/* One call at a time, since it may well fail. */
bool retry_is_cautious(const struct retry *retry);

/* -1: at once. */
int retry_left_ms(const struct retry *retry);

#endif
