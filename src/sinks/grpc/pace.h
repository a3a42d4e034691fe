/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * How long a call may take and how many records it has, as the collector's speed
 * wants it. A call that takes too long may have been of use: what it had is sent
 * twice. So the next one has twice the time and half the records.
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
	uint32_t too_many; /* which took too long */
};

/* @first_ms: how long a call may take that nothing is known of. */
void pace_open(struct pace *pace, uint32_t first_ms);

/* A call of @n_records has had its time. */
void pace_timed_out(struct pace *pace, uint32_t n_records);

/* Another took @took_ms. */
void pace_succeeded(struct pace *pace, uint32_t n_records, int64_t took_ms);

/* One call at a time. */
static inline bool pace_is_cautious(const struct pace *pace)
{
	return pace->limit != UINT32_MAX;
}

#endif
