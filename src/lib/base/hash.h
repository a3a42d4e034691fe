/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Hashes for the tables of user space: those of the programs, of keys of any length. */
#ifndef NETOBS_BASE_HASH_H
#define NETOBS_BASE_HASH_H

#include "bpf/store/hash_words.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Fill @secret, whose size @len is a multiple of 4, with random bytes, new ones each time. */
void secret_fill(void *secret, size_t len);

/*
 * Hash @len bytes, a multiple of 8. @secret: as many random bytes, because senders choose the
 * hashed bytes.
 */
static inline uint64_t hash_bytes(const void *key, size_t len,
				  const uint32_t *secret)
{
	const char *bytes = key;
	uint64_t sum = 0;

	for (size_t i = 0; i < len; i += 2 * sizeof(uint32_t)) {
		uint32_t words[2];

		memcpy(words, bytes + i, sizeof(words));
		sum += hash_pair(words, secret + i / sizeof(uint32_t));
	}
	return hash_finish(sum);
}

#endif
