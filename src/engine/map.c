// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "map.h"

#include <sys/mman.h>
#include <unistd.h>

static struct page_span span_of(uint64_t offset, size_t size)
{
	return pages_span(offset, size, sysconf(_SC_PAGESIZE));
}

void *pages_map(int fd, uint64_t offset, size_t size)
{
	struct page_span span = span_of(offset, size);
	char *pages = mmap(NULL, span.size, PROT_READ | PROT_WRITE, MAP_SHARED,
			   fd, (off_t)span.offset);

	return pages == MAP_FAILED ? NULL : pages + span.inner;
}

void pages_unmap(void *bytes, size_t size)
{
	struct page_span span = span_of((uintptr_t)bytes, size);

	munmap((char *)bytes - span.inner, span.size);
}
