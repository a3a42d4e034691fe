// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "block.h"

#include <string.h>

void block_done(struct block *block)
{
	buffer_free(&block->buffer);
}

void block_clear(struct block *block)
{
	block->buffer.len = 0;
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
	uint32_t total = block->buffer.len + sizeof(total);

	block_put_u32(block, total);
	if (!block->is_short)
		memcpy(block->buffer.bytes + sizeof(uint32_t), &total,
		       sizeof(total));
}

void block_put(struct block *block, const void *bytes, size_t len)
{
	if (len && !block->is_short)
		block->is_short = !buffer_add(&block->buffer, bytes, len);
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
