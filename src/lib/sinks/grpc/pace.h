/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Deadline and size of calls, adapted to the collector's speed. After a deadline, the
 * records of the call are sent again, which the collector may have already. So the next
 * call has twice the time and half the records.
 */
#ifndef NETOBS_SINKS_GRPC_PACE_H
#define NETOBS_SINKS_GRPC_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum { PACE_MOST_MS = 60 * 1000 };

struct pace {
	uint32_t first_ms, most_ms;
	uint32_t deadline_ms;
	uint32_t limit;	   /* records in a batch; UINT32_MAX: any number */
	uint32_t too_many; /* of these a call took too long */
};

/* @first_ms: the deadline of the first call. */
void pace_open(struct pace *pace, uint32_t first_ms);

/* The deadline of a call of @n_records has passed. */
void pace_timed_out(struct pace *pace, uint32_t n_records);

/* A call of @n_records succeeded in @took_ms. */
void pace_succeeded(struct pace *pace, uint32_t n_records, int64_t took_ms);

/** @return whether only one call may be open */
static inline bool pace_is_cautious(const struct pace *pace)
{
	return pace->limit != UINT32_MAX;
}

#endif
