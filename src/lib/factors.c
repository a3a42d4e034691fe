// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "factors.h"

#include <string.h>
#include <sys/random.h>

/* Odd, with well mixed bits (SHA-512's initial values), should there be no others. */
static const __u64 known_factors[HASH_LANES] = {
	0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
	0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
	0x1f83d9abfb41bd6b,
};

void factors_init(__u64 factors[HASH_LANES])
{
	__u64 random[HASH_LANES] = { 0 };

	/* A host that has only just booted does not wait: any will do. */
	if (getrandom(random, sizeof(random), GRND_INSECURE) != sizeof(random))
		memcpy(random, known_factors, sizeof(random));
	/* An even factor would make nothing of a lane's highest bit. */
	for (int i = 0; i < HASH_LANES; i++)
		factors[i] = random[i] | 1;
}
