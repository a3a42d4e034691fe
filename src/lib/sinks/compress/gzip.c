// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* gzip members by zlib: RFC 1951, 1952. */
#include "sink/pack/packer.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

enum {
	TAIL = 8, /* CRC-32 and length */
	LEVEL = 6,
	MEM_LEVEL = 8,
};

static size_t gzip_room(size_t len)
{
	return GZIP_HEAD + compressBound(len) + TAIL;
}

static int gzip_open(void **ret_state)
{
	z_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return -ENOMEM;
	/* Negative: raw deflate; head and tail are written here. */
	if (deflateInit2(stream, LEVEL, Z_DEFLATED, -MAX_WBITS, MEM_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(stream);
		return -ENOMEM;
	}
	*ret_state = stream;
	return 0;
}

static ssize_t gzip_pack(void *state, const char *from, size_t len, char *to)
{
	z_stream *stream = state;
	size_t total;

	deflateReset(stream);
	stream->next_in = (Bytef *)from;
	stream->avail_in = (uInt)len;
	stream->next_out = (Bytef *)to + GZIP_HEAD;
	stream->avail_out = (uInt)compressBound(len);
	if (deflate(stream, Z_FINISH) != Z_STREAM_END)
		return -EIO;
	total = GZIP_HEAD + stream->total_out + TAIL;
	memcpy(to, gzip_head, sizeof(gzip_head));
	put_le32(to + sizeof(gzip_head), (uint32_t)total);
	put_le32(to + total - TAIL,
		 (uint32_t)crc32(0, (const Bytef *)from, (uInt)len));
	put_le32(to + total - TAIL / 2, (uint32_t)len);
	return (ssize_t)total;
}

static void gzip_close(void *state)
{
	deflateEnd(state);
	free(state);
}

__attribute__((visibility("default")))
const struct compressor netobs_compressor = {
	.version = NETOBS_VERSION,
	.room = gzip_room,
	.open = gzip_open,
	.pack = gzip_pack,
	.close = gzip_close,
};
