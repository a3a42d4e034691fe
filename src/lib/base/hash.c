// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "hash.h"

#include <assert.h>
#include <endian.h>
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

/* ---- HMAC-SHA-256 ------------------------------------------------------------------- */

static const uint32_t rounds[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

static uint32_t rotate_right(uint32_t value, unsigned int n)
{
	return value >> n | value << (32 - n);
}

static void extend_block(const uint8_t block[SHA256_BLOCK], uint32_t words[64])
{
	memcpy(words, block, SHA256_BLOCK);
	for (size_t i = 0; i < 16; i++)
		words[i] = be32toh(words[i]);
	for (size_t i = 16; i < 64; i++) {
		const uint32_t a = words[i - 15], b = words[i - 2];

		words[i] = words[i - 16] + words[i - 7] +
			   (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) +
			   (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
	}
}

static void add_block(uint32_t state[8], const uint8_t block[SHA256_BLOCK])
{
	uint32_t words[64], s[8];

	extend_block(block, words);
	memcpy(s, state, sizeof(s));
	for (size_t i = 0; i < 64; i++) {
		const uint32_t first =
			s[7] +
			(rotate_right(s[4], 6) ^ rotate_right(s[4], 11) ^
			 rotate_right(s[4], 25)) +
			((s[4] & s[5]) ^ (~s[4] & s[6])) + rounds[i] + words[i];
		const uint32_t second =
			(rotate_right(s[0], 2) ^ rotate_right(s[0], 13) ^
			 rotate_right(s[0], 22)) +
			((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += first;
		s[0] = first + second;
	}
	for (size_t i = 0; i < 8; i++)
		state[i] += s[i];
}

/* Hash a block followed by a text. */
static void hash_after(const uint8_t block[SHA256_BLOCK], const void *text,
		       size_t len, uint8_t ret_hash[SHA256_SIZE])
{
	uint32_t state[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
	uint8_t rest[HMAC_TEXT_MAX + SHA256_BLOCK] = { 0 };
	const uint64_t bits = htobe64((SHA256_BLOCK + len) * 8);
	/* The text, a bit, and the length. */
	const size_t end = (len + 1 + sizeof(bits) + SHA256_BLOCK - 1) /
			   SHA256_BLOCK * SHA256_BLOCK;

	assert(len <= HMAC_TEXT_MAX && end <= sizeof(rest));
	memcpy(rest, text, len);
	rest[len] = 0x80;
	memcpy(rest + end - sizeof(bits), &bits, sizeof(bits));
	add_block(state, block);
	for (size_t at = 0; at < end; at += SHA256_BLOCK)
		add_block(state, rest + at);
	for (size_t i = 0; i < 8; i++)
		state[i] = htobe32(state[i]);
	memcpy(ret_hash, state, sizeof(state));
}

void hmac_sha256(const void *key, size_t key_len, const void *text, size_t len,
		 uint8_t ret_mac[SHA256_SIZE])
{
	uint8_t inner[SHA256_BLOCK] = { 0 }, outer[SHA256_BLOCK],
		hash[SHA256_SIZE];

	assert(key_len <= SHA256_BLOCK);
	memcpy(inner, key, key_len);
	for (size_t i = 0; i < SHA256_BLOCK; i++) {
		outer[i] = inner[i] ^ 0x5c;
		inner[i] ^= 0x36;
	}
	hash_after(inner, text, len, hash);
	hash_after(outer, hash, sizeof(hash), ret_mac);
}

/* ---- CRC-32C ------------------------------------------------------------------------ */

/*
 * A nibble at a time, on machines without an instruction for it: the remainder
 * of each, for the polynomial 0x1edc6f41 with its bits in reverse.
 */
static const uint32_t nibbles[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
	0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t update_slowly(uint32_t crc, const uint8_t *p, size_t len)
{
	while (len--) {
		crc ^= *p++;
		crc = crc >> 4 ^ nibbles[crc & 15];
		crc = crc >> 4 ^ nibbles[crc & 15];
	}
	return crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t
update_fast(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t wide = crc;

	for (; len >= 8; p += 8, len -= 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	while (len--)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return crc;
}

static uint32_t update_crc(uint32_t crc, const uint8_t *p, size_t len)
{
	return __builtin_cpu_supports("sse4.2") ? update_fast(crc, p, len) :
						  update_slowly(crc, p, len);
}

#else

#define update_crc update_slowly

#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
	return ~update_crc(~crc, data, len);
}
