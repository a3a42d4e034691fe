/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A block of a capture file while it is formed, in this machine's byte order. */
#ifndef NETOBS_CAPTURE_BLOCK_H
#define NETOBS_CAPTURE_BLOCK_H

#include "base/buffer.h"

#include <stdint.h>

/* Zeroed at first. It keeps its memory for the next one. */
struct block {
	struct buffer buffer;
	bool is_short; /* of memory: it cannot be used */
};

void block_done(struct block *block);

/* Make it empty. */
void block_clear(struct block *block);

/* Of pcapng: its type, and room for its length, which block_end() fills. */
void block_begin(struct block *block, uint32_t type);
void block_end(struct block *block);

void block_put(struct block *block, const void *bytes, size_t len);
void block_put_u16(struct block *block, uint16_t value);
void block_put_u32(struct block *block, uint32_t value);

/* Put a time as two words, the upper one first in either byte order. */
void block_put_time(struct block *block, int64_t ns);

/* Pad @len bytes to a multiple of four. */
void block_put_padding(struct block *block, size_t len);

void block_put_option(struct block *block, uint16_t code, const void *value,
		      size_t len);
void block_put_text(struct block *block, uint16_t code, const char *text);

#endif
