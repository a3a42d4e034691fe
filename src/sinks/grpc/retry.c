// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "retry.h"

#include "net/backoff.h"
#include "net/deadline.h"

enum { FIRST_MS = 1000, MOST_MS = 3000 };

void retry_reset(struct retry *retry)
{
	*retry = (struct retry){ .limit = UINT32_MAX, .usual = UINT32_MAX };
}

void retry_later(struct retry *retry, int64_t begun_ms)
{
	retry->due_ms =
		begun_ms + backoff_ms(FIRST_MS, MOST_MS, retry->failures++);
}

void retry_with_less(struct retry *retry, uint32_t n_records, uint64_t end_seq,
		     bool is_size)
{
	retry->limit = n_records / 2;
	if (is_size)
		retry->usual = retry->limit;
	else
		retry->suspect_seq = end_seq;
}

void retry_refused(struct retry *retry)
{
	retry->limit = retry->usual;
}

void retry_succeeded(struct retry *retry, uint64_t end_seq)
{
	retry->failures = 0;
	if (end_seq >= retry->suspect_seq)
		retry->limit = retry->usual;
}

bool retry_is_cautious(const struct retry *retry)
{
	return retry->limit != retry->usual || retry->failures;
}

int retry_left_ms(const struct retry *retry)
{
	int left = retry->due_ms ? left_ms(retry->due_ms) : 0;

	return left ? left : -1;
}
