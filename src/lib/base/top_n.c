// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "top_n.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ITEMS = 64 };

static bool is_after(const struct top_n *top, size_t i, size_t j)
{
	return top->compare(top_n_at(top, i), top_n_at(top, j), top->arg) > 0;
}

/* There is room for one more item than @size. */
static void swap_items(struct top_n *top, size_t i, size_t j)
{
	void *spare = top_n_at(top, top->size);

	memcpy(spare, top_n_at(top, i), top->item_size);
	memcpy(top_n_at(top, i), top_n_at(top, j), top->item_size);
	memcpy(top_n_at(top, j), spare, top->item_size);
}

static void sift_down(struct top_n *top, size_t i)
{
	for (size_t child; (child = 2 * i + 1) < top->n; i = child) {
		if (child + 1 < top->n && is_after(top, child + 1, child))
			child++;
		if (!is_after(top, child, i))
			return;
		swap_items(top, i, child);
	}
}

static int append_item(struct top_n *top, const void *item)
{
	if (top->n == top->size) {
		const size_t size = top->size ? 2 * top->size : FIRST_ITEMS;
		char *items = reallocarray(top->items, size + 1, top->item_size);

		if (!items)
			return -ENOMEM;
		top->items = items;
		top->size = size;
	}
	memcpy(top_n_at(top, top->n++), item, top->item_size);
	if (top->n == top->most)
		for (size_t i = top->n / 2; i-- > 0;)
			sift_down(top, i);
	return 0;
}

int top_n_add(struct top_n *top, const void *item)
{
	if (!top->most || top->n < top->most)
		return append_item(top, item);
	if (top->compare(item, top->items, top->arg) < 0) {
		memcpy(top->items, item, top->item_size);
		sift_down(top, 0);
	}
	return 0;
}

void top_n_sort(struct top_n *top)
{
	if (top->n)
		qsort_r(top->items, top->n, top->item_size, top->compare,
			top->arg);
}

void top_n_clear(struct top_n *top)
{
	top->n = 0;
}

void top_n_free(struct top_n *top)
{
	free(top->items);
	top->items = NULL;
	top->n = top->size = 0;
}
