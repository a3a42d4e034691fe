// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "secret.h"

#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* Should the kernel have no randomness to give: better than a constant. */
static void fill_from_clock(struct hash_secret *secret)
{
	uint32_t words[sizeof(*secret) / sizeof(uint32_t)];
	struct timespec now = { 0 };
	uint64_t state;

	clock_gettime(CLOCK_MONOTONIC, &now);
	state = (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec ^
		(uintptr_t)secret;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		state += 0x9e3779b97f4a7c15;
		words[i] = (uint32_t)(hash_finish(state) >> 32);
	}
	memcpy(secret, words, sizeof(*secret));
}

void secret_init(struct hash_secret *secret)
{
	/* A host that has only just booted does not wait: any will do. */
	if (getrandom(secret, sizeof(*secret), GRND_INSECURE) !=
	    (ssize_t)sizeof(*secret))
		fill_from_clock(secret);
}
