/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Hashes and checksums. */
#ifndef NETOBS_BASE_HASH_H
#define NETOBS_BASE_HASH_H

#include "bpf/store/hash_words.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Hashes for the tables of user space: those of the programs, of keys of any length. */

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

/* HMAC-SHA-256 (RFC 2104, FIPS 180-4) of short texts: an identifier that its key cannot be found from. */

enum {
	SHA256_SIZE = 32,
	SHA256_BLOCK = 64,
	HMAC_TEXT_MAX = 2 * SHA256_BLOCK /* bytes of a text */
};

/*
 * @param key_len  SHA256_BLOCK at most
 * @param len      HMAC_TEXT_MAX at most
 */
void hmac_sha256(const void *key, size_t key_len, const void *text, size_t len,
		 uint8_t ret_mac[SHA256_SIZE]);

/* CRC-32C (Castagnoli), as in iSCSI: RFC 3720, 12.1. */

/* @return the checksum of @len bytes that follow those that gave @crc; 0: they are the first */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);

#endif
