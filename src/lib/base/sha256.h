/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* HMAC-SHA-256 (RFC 2104, FIPS 180-4) of short texts: an identifier that its key cannot be found from. */
#ifndef NETOBS_BASE_SHA256_H
#define NETOBS_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

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

#endif
