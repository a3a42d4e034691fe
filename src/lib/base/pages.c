// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "pages.h"

#include <stdint.h>
#include <sys/mman.h>

static void *map_anonymous(size_t size)
{
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return bytes == MAP_FAILED ? NULL : bytes;
}

/* The kernel gives no huge page where less than one is aligned. */
static void *map_aligned(size_t size)
{
	char *bytes = map_anonymous(2 * size);
	size_t before;

	if (!bytes)
		return NULL;
	before = -(uintptr_t)bytes & (size - 1);
	if (before)
		munmap(bytes, before);
	munmap(bytes + before + size, size - before);
	return bytes + before;
}

void *pages_map(size_t size)
{
	void *bytes;

	if (size < PAGES_HUGE)
		return map_anonymous(size);
	bytes = map_aligned(size);
	if (bytes)
		madvise(bytes, size, MADV_HUGEPAGE);
	return bytes;
}

void pages_unmap(void *bytes, size_t size)
{
	if (bytes)
		munmap(bytes, size);
}
