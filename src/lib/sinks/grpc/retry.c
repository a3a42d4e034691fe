// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "retry.h"

#include "base/clock_ms.h"
#include "base/util.h"

enum {
	REFUSALS_MAX = 20, /* in a row: enough to halve any batch, and some more */
	DISTANCE_MAX = 4096,
};

void retry_open(struct retry *retry)
{
	*retry = (struct retry){ .limit = UINT32_MAX,
				 .usual = UINT32_MAX,
				 .begin = 1 };
}

void retry_renew(struct retry *retry)
{
	if (retry->limit == retry->usual)
		retry->limit = UINT32_MAX;
	retry->usual = UINT32_MAX;
	backoff_reset(&retry->backoff);
}

static void wait_to_resend(struct retry *retry, int64_t begun_ms,
			   uint32_t failures)
{
	retry->backoff.due_ms =
		begun_ms + backoff_delay_ms(&retry->backoff, failures);
}

void retry_later(struct retry *retry, int64_t begun_ms)
{
	backoff_wait(&retry->backoff, begun_ms);
}

void retry_wait(struct retry *retry, int64_t ms)
{
	if (ms)
		retry->backoff.due_ms =
			max_i64(retry->backoff.due_ms, now_ms() + ms);
}

static void halve_batch(struct retry *retry, const struct refusal *refusal)
{
	retry->limit = refusal->n_records / 2;
	if (refusal->action == STATUS_TOO_BIG)
		retry->usual = retry->limit;
	else
		retry->suspect_seq = refusal->end_seq;
}

/* The first record itself is tried again. */
static void forget_distance(struct retry *retry)
{
	retry->distance = 0;
	retry->begin = 1;
}

static bool judge_record(struct retry *retry, uint64_t end_seq)
{
	bool is_guilty = !retry->distance && retry->is_proven &&
			 retry->culprit_seq == end_seq;

	retry->limit = 1; /* there may be more of its kind */
	retry->is_proven = false;
	if (is_guilty) {
		retry->culprit_seq = 0;
		retry->is_picky = true;
		return true;
	}
	if (!retry->distance)
		retry->culprit_seq = end_seq;
	retry->distance = retry->distance ? 2 * retry->distance : retry->begin;
	if (retry->distance > DISTANCE_MAX)
		forget_distance(retry);
	return false;
}

bool retry_refused(struct retry *retry, const struct refusal *refusal)
{
	retry->refusals++;
	if (retry_is_hopeless(retry))
		wait_to_resend(retry, refusal->begun_ms,
			       retry->refusals - REFUSALS_MAX - 1);
	if (refusal->action == STATUS_SUSPECT && retry->refusals == 1 &&
	    !retry->is_picky) {
		wait_to_resend(retry, refusal->begun_ms, 0);
		return false;
	}
	if (refusal->n_records <= 1)
		return judge_record(retry, refusal->end_seq);
	halve_batch(retry, refusal);
	return false;
}

/* The last one there is, if it was not tried yet. */
void retry_find_nothing(struct retry *retry, uint32_t n)
{
	if (n && n - 1 > retry->distance / 2)
		retry->distance = n - 1;
	else
		forget_distance(retry);
}

/* Raise the limit to the usual one, if it was not reached, or else to twice as many. */
static void take_more(struct retry *retry, uint32_t n_records)
{
	if (n_records < retry->limit || retry->limit >= retry->usual / 2)
		retry->limit = retry->usual;
	else
		retry->limit *= 2;
}

void retry_succeeded(struct retry *retry, uint32_t n_records, uint64_t end_seq)
{
	backoff_reset(&retry->backoff);
	retry->refusals = 0;
	if (retry->distance) {
		retry->begin = retry->distance;
		retry->distance = 0;
		retry->is_proven = true;
		return;
	}
	forget_distance(retry);
	retry->culprit_seq = 0;
	retry->is_proven = false;
	if (end_seq >= retry->suspect_seq)
		take_more(retry, n_records);
}

bool retry_is_cautious(const struct retry *retry)
{
	return retry->limit != retry->usual || retry->backoff.failures ||
	       retry->refusals || retry->culprit_seq;
}

bool retry_is_hopeless(const struct retry *retry)
{
	return retry->refusals > REFUSALS_MAX;
}

int retry_left_ms(const struct retry *retry)
{
	int left = backoff_left_ms(&retry->backoff);

	return left ?: -1;
}

/* ---- Pace ------------------------------------------------------------------------ */

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

	/* The deadline falls slowly, and not while small batches say little. */
	if (!pace_is_cautious(pace))
		least = max_u64(pace->first_ms, least - least / 8);
	pace->deadline_ms =
		(uint32_t)min_u64(max_u64(SPARE * took, least), pace->most_ms);
	grow_pace(pace, n_records, took);
}
