// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "retry.h"

#include "base/util.h"

enum {
	SPARE = 3, /* a call may take that many times what the last one took */
	LARGE = 1 << 17, /* records, more than any batch has */
};

void pace_open(struct pace *pace, uint32_t first_ms)
{
	*pace = (struct pace){
		.first_ms = first_ms,
		.most_ms = (uint32_t)max_u64(first_ms, PACE_MOST_MS),
		.deadline_ms = first_ms,
		.limit = UINT32_MAX,
	};
}

void pace_timed_out(struct pace *pace, uint32_t n_records)
{
	pace->deadline_ms =
		(uint32_t)min_u64(2ULL * pace->deadline_ms, pace->most_ms);
	pace->limit = (uint32_t)max_u64(n_records / 2, 1);
	pace->too_many = (uint32_t)max_u64(pace->too_many, n_records);
}

/* Twice as many take twice the time, at most, and there is to be some left. */
static void grow_pace(struct pace *pace, uint32_t n_records, uint64_t took_ms)
{
	if (n_records < pace->limit || 2 * took_ms > pace->deadline_ms / 4 * 3)
		return;
	pace->limit = (uint32_t)min_u64(2ULL * n_records, pace->too_many);
	if (n_records < pace->too_many)
		return;
	pace->limit = UINT32_MAX;
	pace->too_many = 0;
}

void pace_succeeded(struct pace *pace, uint32_t n_records, int64_t took_ms)
{
	uint64_t took = took_ms > 0 ? (uint64_t)took_ms : 0;
	uint64_t least = pace->deadline_ms;

	/* It becomes less slowly, and not while small batches say little. */
	if (!pace_is_cautious(pace))
		least = max_u64(pace->first_ms, least - least / 8);
	pace->deadline_ms =
		(uint32_t)min_u64(max_u64(SPARE * took, least), pace->most_ms);
	grow_pace(pace, n_records, took);
}
