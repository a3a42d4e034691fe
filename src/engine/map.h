/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Parts of BPF maps in memory, from any byte on. The kernel maps from multiples
 * of its page size only, which is 4, 16 or 64 KiB, and buckets fill no such page.
 */
#ifndef NETOBS_ENGINE_MAP_H
#define NETOBS_ENGINE_MAP_H

#include <stddef.h>
#include <stdint.h>

/* What to map for bytes that start @inner bytes into it. */
struct page_span {
	uint64_t offset;
	size_t size;
	size_t inner;
};

/* @page_size: a power of two. */
static inline struct page_span pages_span(uint64_t offset, size_t size,
					  size_t page_size)
{
	size_t inner = offset & (page_size - 1);

	return (struct page_span){
		.offset = offset - inner,
		.size = size + inner,
		.inner = inner,
	};
}

/* NULL: errno. */
void *pages_map(int fd, uint64_t offset, size_t size);
void pages_unmap(void *bytes, size_t size);

#endif
