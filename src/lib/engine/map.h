/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * BPF maps: made, in memory, and changed where the kernel makes the caller wait.
 *
 * A call that takes long is made by a thread: the caller's event loop must not stand
 * still meanwhile. The thread blocks all signals, makes that one call, touches no
 * memory of the context and ends.
 */
#ifndef NETOBS_ENGINE_MAP_H
#define NETOBS_ENGINE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Arrays ------------------------------------------------------------------- */

/**
 * @param name   or NULL
 * @param n      entries
 * @param flags  BPF_F_...
 * @return a file descriptor, or -errno
 */
int map_make_array(const char *name, uint32_t value_size, uint32_t n,
		   uint32_t flags);

/**
 * An array of maps like @inner_fd.
 *
 * @return a file descriptor, or -errno
 */
int map_make_outer(int inner_fd, uint32_t n);

/* ---- Parts of a map in memory --------------------------------------------------- */

/*
 * The kernel maps from multiples of its page size only, which is 4, 16 or 64 KiB, and tables need
 * not begin at one: the wanted bytes begin @inner bytes into the mapping.
 */
struct map_span {
	uint64_t offset;
	size_t size;
	size_t inner;
};

/** @param page_size  a power of two */
static inline struct map_span map_span(uint64_t offset, size_t size,
				       size_t page_size)
{
	size_t inner = offset & (page_size - 1);

	return (struct map_span){
		.offset = offset - inner,
		.size = size + inner,
		.inner = inner,
	};
}

/** @return the bytes from @offset on, or NULL with errno set */
void *map_mmap(int fd, uint64_t offset, size_t size);

/* @bytes: or NULL */
void map_munmap(const void *bytes, size_t size);

/**
 * Sum up the counters that a per-CPU array has at index 0: 64-bit members of a struct of @size bytes. The sums
 * are 0 if the map cannot be read.
 */
void map_sum_cpus(int fd, void *ret_sums, size_t size);

/* ---- Maps of maps --------------------------------------------------------------- */

/**
 * Put @inner_fd at @index. The change takes effect at once, but the kernel returns only
 * after its grace period: 10 to 50 ms mostly, and over a second was seen on a host whose
 * CPUs were all flooded.
 */
int map_update(int outer_fd, uint32_t index, int inner_fd);

/** @return whether there is a map at @index */
bool map_has(int outer_fd, uint32_t index);

/* ---- Grace periods -------------------------------------------------------------- */

struct map_grace;

/**
 * Begin to wait, in a thread, for a grace period of the kernel: once its result is 0, every
 * BPF program that ran at this moment has ended, whatever CPU it ran on and however long
 * that CPU was stopped.
 *
 * @return 0, or -errno
 */
int map_grace_begin(struct map_grace **ret_grace);

/** @return -EAGAIN: it has not ended; or 0 or -errno, and *@grace is freed */
int map_grace_result(struct map_grace **grace);

/* Give up waiting. *@grace may be NULL. */
void map_grace_abandon(struct map_grace *grace);

/**
 * map_update() in a thread, with duplicates of the descriptors. map_has() tells when the change has
 * taken effect, in less than a millisecond mostly; the result comes after a grace period.
 *
 * @return 0, or -errno
 */
int map_update_begin(int outer_fd, uint32_t index, int inner_fd,
		     struct map_grace **ret_grace);

/* ---- Overflow tables ------------------------------------------------------------ */

/** @return the file descriptor of a table that has room for @n pages, or -errno */
int map_make_overflow(uint32_t n);

#endif
