/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Large memory that is read in no order: in huge pages where the system grants them, so
 * that a look-up costs no walk through page tables, and apart from the heap, so that
 * freeing it gives it back.
 */
#ifndef NETOBS_BASE_PAGES_H
#define NETOBS_BASE_PAGES_H

#include <stddef.h>

enum { PAGES_HUGE = 2 << 20 };

/**
 * @param size  from PAGES_HUGE on a power of two
 * @return zeroes, or NULL
 */
void *pages_map(size_t size);

/** NULL is fine. */
void pages_unmap(void *bytes, size_t size);

#endif
