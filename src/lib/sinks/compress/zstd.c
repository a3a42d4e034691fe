// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Zstandard frames by libzstd, with checksums: RFC 8878. */
#include "sink/pack/packer.h"

#include <errno.h>
#include <zstd.h>

enum { LEVEL = 3 };

static size_t zstd_room(size_t len)
{
	return ZSTD_HEAD + ZSTD_compressBound(len);
}

static int zstd_open(void **ret_state)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();

	if (!context)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	*ret_state = context;
	return 0;
}

static ssize_t zstd_pack(void *state, const char *from, size_t len, char *to)
{
	size_t n = ZSTD_compress2(state, to + ZSTD_HEAD,
				  ZSTD_compressBound(len), from, len);

	if (ZSTD_isError(n))
		return -EIO;
	memcpy(to, zstd_head, sizeof(zstd_head));
	put_le32(to + sizeof(zstd_head), (uint32_t)n);
	return (ssize_t)(ZSTD_HEAD + n);
}

static void zstd_close(void *state)
{
	ZSTD_freeCCtx(state);
}

__attribute__((visibility("default")))
const struct compressor netobs_compressor = {
	.version = NETOBS_VERSION,
	.room = zstd_room,
	.open = zstd_open,
	.pack = zstd_pack,
	.close = zstd_close,
};
