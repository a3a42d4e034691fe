/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * LD_PRELOAD: memory is refused in a program that knows nothing of it.
 *
 * NETOBS_REFUSE=FIRST,COUNT   so many requests from this one on, counted from 0
 * NETOBS_REQUESTS=FILE        the number of requests is in FILE at the end
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's own names for what is replaced here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static unsigned long first, count;
static _Atomic unsigned long requests;

static __attribute__((constructor)) void read_plan(void)
{
	const char *plan = getenv("NETOBS_REFUSE");

	if (plan && sscanf(plan, "%lu,%lu", &first, &count) != 2)
		abort();
	requests = 0;
}

static __attribute__((destructor)) void report(void)
{
	const char *path = getenv("NETOBS_REQUESTS");
	unsigned long total = requests;
	FILE *file;

	count = 0;
	file = path ? fopen(path, "w") : NULL;
	if (!file)
		return;
	fprintf(file, "%lu\n", total);
	fclose(file);
}

static int is_refused(void)
{
	if (atomic_fetch_add(&requests, 1) - first >= count)
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t size)
{
	return is_refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return is_refused() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	return is_refused() ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return is_refused() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	if (is_refused())
		return ENOMEM;
	*ret = __libc_memalign(alignment, size);
	return *ret ? 0 : ENOMEM;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (is_refused())
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}
