/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The first items, in some order, of any number of them: those that are kept are a heap. */
#ifndef NETOBS_BASE_TOP_N_H
#define NETOBS_BASE_TOP_N_H

#include <stddef.h>

struct top_n {
	/** @return < 0: @a comes before @b, as for qsort_r(3) */
	int (*compare)(const void *a, const void *b, void *arg);
	void *arg;
	size_t item_size;
	size_t most; /* items; 0: as many as are added */

	char *items; /* once there are @most: a heap, the last one on top */
	size_t n, size;
};

static inline void *top_n_at(const struct top_n *top, size_t i)
{
	return top->items + i * top->item_size;
}

/** @return 0; -ENOMEM */
int top_n_add(struct top_n *top, const void *item);

/** The first one first. Nothing can be added until top_n_clear(). */
void top_n_sort(struct top_n *top);

void top_n_clear(struct top_n *top);
void top_n_free(struct top_n *top);

#endif
