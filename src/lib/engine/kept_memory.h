/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Memory of the library that outlives the process: arrays that are pinned with the other
 * maps of a set, so all of it goes when the set does.
 */
#ifndef NETOBS_ENGINE_KEPT_MEMORY_H
#define NETOBS_ENGINE_KEPT_MEMORY_H

#include "pinned.h"

#include <stddef.h>

/** @return what an earlier process left under that name; NULL: nothing of this size */
void *kept_memory_find(const struct pinned *pinned, const char *name,
		       size_t size);

/** @return zeroes, in the place of what has that name; NULL: errno */
void *kept_memory_make(const struct pinned *pinned, const char *name,
		       size_t size);

/* Unmap the memory, whose contents stay for the next process. */
void kept_memory_close(void *bytes, size_t size);

/* Unmap the memory and remove it. */
void kept_memory_remove(const struct pinned *pinned, const char *name,
			void *bytes, size_t size);

#endif
