/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Ownership in types: cleanup attributes, and how to hand over what they hold. */
#ifndef NETOBS_BASE_UTIL_H
#define NETOBS_BASE_UTIL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* @ret_copy: a copy of @text, or NULL of NULL. @return 0; -ENOMEM */
static inline int copy_optional(const char *text, char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return text && !*ret_copy ? -ENOMEM : 0;
}

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define NSEC_PER_SEC 1000000000LL
#define NSEC_PER_MSEC 1000000LL
#define TICK_NS (10 * NSEC_PER_MSEC) /* of the kernel, at most */

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline void free_ptr(void *ptr)
{
	free(*(void **)ptr);
}

/*
 * Make room for one more than @n items in the array that @array points to: it doubles when it is
 * full.
 *
 * @param first  its capacity to begin with
 * @return false: no memory
 */
static inline bool array_reserve(void *array, uint32_t n, uint32_t *capacity,
				 size_t size, uint32_t first)
{
	uint32_t more = *capacity ? 2 * *capacity : first;
	void *grown;

	if (n < *capacity)
		return true;
	grown = reallocarray(*(void **)array, more, size);
	if (!grown)
		return false;
	*(void **)array = grown;
	*capacity = more;
	return true;
}

/**
 * Have an array of *@n items have @to of them, if it has fewer: those that are added are zero.
 *
 * @return false: no memory, and nothing has changed
 */
static inline bool array_extend(void *array, uint32_t *n, uint32_t to, size_t size)
{
	char *grown;

	if (to <= *n)
		return true;
	grown = reallocarray(*(void **)array, to, size);
	if (!grown)
		return false;
	memset(grown + *n * size, 0, (to - *n) * size);
	*(void **)array = grown;
	*n = to;
	return true;
}

#define cleanup_fd __attribute__((cleanup(close_fd)))
#define cleanup_free __attribute__((cleanup(free_ptr)))

#define TAKE_FD(fd)             \
	({                      \
		int _fd = (fd); \
		(fd) = -1;      \
		_fd;            \
	})

#define TAKE_PTR(ptr)                       \
	({                                  \
		__typeof__(ptr) _p = (ptr); \
		(ptr) = NULL;               \
		_p;                         \
	})

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Add 64-bit counters, of which a struct of @size bytes consists; others may add to @from. */
static inline void counters_add(void *to, const void *from, size_t size)
{
	const uint64_t *value = from;
	uint64_t *sum = to;

	for (size_t i = 0; i < size / sizeof(*sum); i++)
		sum[i] += __atomic_load_n(&value[i], __ATOMIC_RELAXED);
}

static inline void counters_subtract(void *from, const void *less, size_t size)
{
	const uint64_t *value = less;
	uint64_t *sum = from;

	for (size_t i = 0; i < size / sizeof(*sum); i++)
		sum[i] -= value[i];
}

/* Add to the members `packets` and `bytes` of *@to those of *@from: of any structs with both. */
#define count_add(to, from)                      \
	do {                                     \
		__typeof__(to) to_ = (to);       \
		__typeof__(from) from_ = (from); \
		to_->packets += from_->packets;  \
		to_->bytes += from_->bytes;      \
	} while (0)

#endif
