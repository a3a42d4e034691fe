// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "hash.h"

#include <sys/random.h>
#include <time.h>

/* Should the kernel have no randomness to give: better than a constant. */
static void fill_from_clock(char *secret, size_t len)
{
	struct timespec now = { 0 };
	uint64_t state;

	clock_gettime(CLOCK_MONOTONIC, &now);
	state = (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec ^
		(uintptr_t)secret;
	for (size_t i = 0; i < len; i += sizeof(uint32_t)) {
		uint32_t word;

		state += 0x9e3779b97f4a7c15;
		word = (uint32_t)(hash_finish(state) >> 32);
		memcpy(secret + i, &word, sizeof(word));
	}
}

void secret_fill(void *secret, size_t len)
{
	/* A host that has only just booted does not wait: any will do. */
	if (getrandom(secret, len, GRND_INSECURE) != (ssize_t)len)
		fill_from_clock(secret, len);
}
