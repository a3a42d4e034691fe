/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "busiest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/flow.h>

int busiest_init(struct busiest *busiest, size_t size)
{
	struct row *rows = reallocarray(NULL, size, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	*busiest = (struct busiest){ .rows = rows, .size = size };
	return 0;
}

static void swap(struct row *a, struct row *b)
{
	struct row row = *a;

	*a = *b;
	*b = row;
}

static void sift_up(struct row *rows, size_t i)
{
	while (i && rows[i].bytes < rows[(i - 1) / 2].bytes) {
		swap(&rows[i], &rows[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
}

static void sift_down(struct row *rows, size_t n)
{
	for (size_t i = 0, child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && rows[child + 1].bytes < rows[child].bytes)
			child++;
		if (rows[i].bytes <= rows[child].bytes)
			return;
		swap(&rows[i], &rows[child]);
	}
}

void busiest_add(struct busiest *busiest, const struct netobs_flow *flow)
{
	busiest->flows++;
	busiest->packets += flow->packets;
	busiest->bytes += flow->bytes;

	if (busiest->n < busiest->size) {
		row_fill(&busiest->rows[busiest->n], flow);
		sift_up(busiest->rows, busiest->n++);
	} else if (flow->bytes > busiest->rows[0].bytes) {
		row_fill(&busiest->rows[0], flow);
		sift_down(busiest->rows, busiest->n);
	}
}

/* Equal flows in the order of their addresses, so that lines keep their place. */
static int compare(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	return strcmp(a->endpoints, b->endpoints);
}

void busiest_sort(struct busiest *busiest)
{
	qsort(busiest->rows, busiest->n, sizeof(*busiest->rows), compare);
}

void busiest_clear(struct busiest *busiest)
{
	busiest->n = 0;
	busiest->flows = busiest->packets = busiest->bytes = 0;
}

void busiest_free(struct busiest *busiest)
{
	free(busiest->rows);
	*busiest = (struct busiest){ 0 };
}
