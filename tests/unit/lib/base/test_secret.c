// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_test.h"
#include "base/hash.h"
#include "bpf/store/hash.h"

enum { WORDS = sizeof(struct hash_secret) / sizeof(uint32_t) };

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Of 60 random words two are the same once in 2 million runs. */
TEST(secrets_share_no_word)
{
	uint32_t words[2 * WORDS];

	for (int i = 0; i < 2; i++) {
		struct hash_secret secret = { 0 };

		secret_fill(&secret, sizeof(secret));
		memcpy(words + i * WORDS, &secret, sizeof(secret));
	}
	qsort(words, ARRAY_SIZE(words), sizeof(words[0]), compare_u32);
	for (size_t i = 1; i < ARRAY_SIZE(words); i++)
		assert_int_not_equal(words[i], words[i - 1]);
}
