/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Lines that were read, to find those that repeat: by hashes of 64 bits, with a secret. */
#ifndef NETOBS_CLI_SERVICES_SEEN_H
#define NETOBS_CLI_SERVICES_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SEEN_MAX = 1 << 25, /* lines; later ones are all new */
	SEEN_BLOCK = 256,
};

/* All zero: none. */
struct seen {
	uint64_t *hashes;
	uint32_t size, n;
	uint32_t secret[SEEN_BLOCK / sizeof(uint32_t)];
	bool is_full; /* some lines were not noted */
};

/**
 * @param salt  distinguishes equal lines
 * @return whether the line is new
 */
bool seen_add(struct seen *seen, const char *line, size_t len, uint64_t salt);

void seen_free(struct seen *seen);

#endif
