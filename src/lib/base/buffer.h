/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Bytes that grow. All zero: there are none. */
#ifndef NETOBS_BASE_BUFFER_H
#define NETOBS_BASE_BUFFER_H

#include "util.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { BUFFER_MIN = 4096 };

struct buffer {
	char *bytes;
	size_t len, size;
};

/** Have room for @len more. @return false: no memory */
static inline bool buffer_reserve(struct buffer *buffer, size_t len)
{
	size_t size = max_u64(BUFFER_MIN,
			      max_u64(buffer->len + len, 2 * buffer->size));
	char *bytes;

	if (buffer->len + len <= buffer->size)
		return true;
	bytes = realloc(buffer->bytes, size);
	if (!bytes)
		return false;
	buffer->bytes = bytes;
	buffer->size = size;
	return true;
}

/** @return false: no memory */
static inline bool buffer_add(struct buffer *buffer, const void *bytes, size_t len)
{
	if (!buffer_reserve(buffer, len))
		return false;
	memcpy(buffer->bytes + buffer->len, bytes, len);
	buffer->len += len;
	return true;
}

static inline void buffer_free(struct buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct buffer){ 0 };
}

#endif
