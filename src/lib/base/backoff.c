// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "outage.h"

#include "clock_ms.h"

#include <sys/random.h>

uint32_t backoff_delay_ms(const struct backoff *backoff, uint32_t failures)
{
	uint64_t first_ms = backoff->first_ms ?: BACKOFF_FIRST_MS;
	uint64_t delay = min_u64(first_ms << min_u64(failures, 16),
				 backoff->most_ms ?: BACKOFF_MOST_MS);
	uint8_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	return (uint32_t)(delay - delay * random / 4 / UINT8_MAX);
}

void backoff_wait(struct backoff *backoff, int64_t from_ms)
{
	backoff->due_ms =
		max_i64(from_ms + backoff_delay_ms(backoff, backoff->failures),
			now_ms());
	backoff->failures++;
}

bool backoff_is_due(const struct backoff *backoff)
{
	return !backoff->due_ms || now_ms() >= backoff->due_ms;
}

int backoff_left_ms(const struct backoff *backoff)
{
	return until_ms(backoff->due_ms);
}

void backoff_reset(struct backoff *backoff)
{
	backoff->failures = 0;
	backoff->due_ms = 0;
}
