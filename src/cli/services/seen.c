/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"

enum { FIRST_SIZE = 1024 };

static uint64_t hash_line(const struct seen *seen, const char *line, size_t len,
			  uint64_t salt)
{
	uint64_t hash = hash_finish(salt + len);

	for (size_t at = 0; at < len; at += SEEN_BLOCK) {
		const size_t n = min_u64(SEEN_BLOCK, len - at);
		char block[SEEN_BLOCK];

		memcpy(block, line + at, n);
		memset(block + n, 0, SEEN_BLOCK - n);
		hash = hash_finish(hash ^
				   hash_bytes(block, SEEN_BLOCK, seen->secret));
	}
	return hash ?: 1;
}

/* @return whether it was not there */
static bool put(uint64_t *hashes, uint32_t size, uint64_t hash)
{
	uint32_t i = (uint32_t)hash & (size - 1);

	for (; hashes[i]; i = (i + 1) & (size - 1))
		if (hashes[i] == hash)
			return false;
	hashes[i] = hash;
	return true;
}

static bool grow(struct seen *seen)
{
	const uint32_t size = seen->size ? 2 * seen->size : FIRST_SIZE;
	uint64_t *hashes = calloc(size, sizeof(*hashes));

	if (!hashes)
		return false;
	if (!seen->size)
		secret_fill(seen->secret, sizeof(seen->secret));
	for (uint32_t i = 0; i < seen->size; i++)
		if (seen->hashes[i])
			put(hashes, size, seen->hashes[i]);
	free(seen->hashes);
	seen->hashes = hashes;
	seen->size = size;
	return true;
}

bool seen_add(struct seen *seen, const char *line, size_t len, uint64_t salt)
{
	if (seen->n >= SEEN_MAX ||
	    (seen->n >= seen->size / 4 * 3 && !grow(seen))) {
		seen->is_full = true;
		return true;
	}
	if (!put(seen->hashes, seen->size, hash_line(seen, line, len, salt)))
		return false;
	seen->n++;
	return true;
}

void seen_free(struct seen *seen)
{
	free(seen->hashes);
	*seen = (struct seen){ 0 };
}
