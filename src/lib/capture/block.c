// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "block.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE_FIRST = 4096 };

void block_done(struct block *block)
{
	free(block->bytes);
	*block = (struct block){ 0 };
}

void block_clear(struct block *block)
{
	block->len = 0;
	block->is_short = false;
}

void block_begin(struct block *block, uint32_t type)
{
	block_clear(block);
	block_put_u32(block, type);
	block_put_u32(block, 0);
}

void block_end(struct block *block)
{
	uint32_t total = block->len + sizeof(total);

	block_put_u32(block, total);
	if (!block->is_short)
		memcpy(block->bytes + sizeof(uint32_t), &total, sizeof(total));
}

static void grow_block(struct block *block, size_t len)
{
	size_t size = block->size ?: SIZE_FIRST;
	uint8_t *bytes;

	while (size < len)
		size *= 2;
	bytes = realloc(block->bytes, size);
	block->is_short |= !bytes;
	if (!bytes)
		return;
	block->bytes = bytes;
	block->size = size;
}

void block_put(struct block *block, const void *bytes, size_t len)
{
	if (block->len + len > block->size)
		grow_block(block, block->len + len);
	if (block->is_short)
		return;
	if (len)
		memcpy(block->bytes + block->len, bytes, len);
	block->len += len;
}

void block_put_u16(struct block *block, uint16_t value)
{
	block_put(block, &value, sizeof(value));
}

void block_put_u32(struct block *block, uint32_t value)
{
	block_put(block, &value, sizeof(value));
}

void block_put_time(struct block *block, int64_t ns)
{
	block_put_u32(block, (uint64_t)ns >> 32);
	block_put_u32(block, ns);
}

void block_put_padding(struct block *block, size_t len)
{
	static const uint8_t zeros[4];

	block_put(block, zeros, -len & 3);
}

void block_put_option(struct block *block, uint16_t code, const void *value,
		      size_t len)
{
	block_put_u16(block, code);
	block_put_u16(block, len);
	block_put(block, value, len);
	block_put_padding(block, len);
}

void block_put_text(struct block *block, uint16_t code, const char *text)
{
	block_put_option(block, code, text, strlen(text));
}
