// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "reports.h"

#include "base/util.h"

#include <sys/random.h>

enum { MESSAGES_MAX = 4096 };

/* Soon at first: the first message with the templates may be lost. */
static const unsigned int first_ms[] = { 1000, 4000 };

void refresh_start(struct refresh *refresh, int64_t now_ms)
{
	refresh->rounds = 0;
	refresh->due_ms = now_ms;
}

bool refresh_is_due(const struct refresh *refresh, int64_t now_ms)
{
	if (!refresh->rounds)
		return true;
	return refresh->repeats &&
	       (now_ms >= refresh->due_ms || refresh->messages >= MESSAGES_MAX);
}

/* A tenth less for some: many hosts may have been started at once. */
static uint64_t with_jitter(uint64_t ms)
{
	uint8_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	return ms - ms / 10 * random / UINT8_MAX;
}

void refresh_done(struct refresh *refresh, int64_t now_ms)
{
	uint64_t wait_ms = with_jitter(refresh->interval_ms);

	if (refresh->rounds < ARRAY_SIZE(first_ms))
		wait_ms = min_u64(wait_ms, first_ms[refresh->rounds]);
	refresh->rounds++;
	refresh->messages = 0;
	refresh->due_ms = now_ms + (int64_t)wait_ms;
}
