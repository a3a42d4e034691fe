// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "backoff.h"

#include "base/util.h"

#include <sys/random.h>

uint32_t backoff_ms(uint32_t first_ms, uint32_t most_ms, uint32_t failures)
{
	uint64_t delay =
		min_u64((uint64_t)first_ms << min_u64(failures, 16), most_ms);
	uint8_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	return (uint32_t)(delay - delay * random / 4 / UINT8_MAX);
}
