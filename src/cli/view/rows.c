/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "rows.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROWS = 64 };

void rows_init(struct rows *rows, const struct order *order, bool are_flows,
	       size_t most)
{
	*rows = (struct rows){ .order = *order,
			       .row_size = are_flows ? sizeof(struct row) :
						       offsetof(struct row, info),
			       .most = most };
}

static int64_t rows_sort_number(enum sort sort, const struct tally *tally)
{
	switch (sort) {
	case SORT_PACKETS:
		return (int64_t)tally->packets;
	case SORT_FLOWS:
		return (int64_t)tally->flows;
	case SORT_SENT:
		return (int64_t)tally->sent_bytes;
	case SORT_RTT:
		return (int64_t)tally_rtt_ns(tally);
	case SORT_RETRANSMITS:
		return (int64_t)tally->retransmits;
	case SORT_DURATION:
		return tally->end_ns - tally->start_ns;
	case SORT_TIME:
		return -tally->start_ns;
	case SORT_VALUE:
		return 0;
	default:
		return (int64_t)tally->bytes;
	}
}

/* Equal rows in the order of their addresses, so that lines keep their place. */
static int rows_compare(const struct order *order, const struct row *a,
			const struct row *b)
{
	int64_t left = rows_sort_number(order->sort, &a->tally);
	int64_t right = rows_sort_number(order->sort, &b->tally);
	int differ = 0;

	if (left != right)
		return left < right ? 1 : -1;
	if (order->sort == SORT_VALUE)
		differ = memcmp(a->value + order->offset,
				b->value + order->offset, order->size);
	return differ ? differ : memcmp(a->value, b->value, sizeof(a->value));
}

static bool rows_is_after(const struct rows *rows, size_t i, size_t j)
{
	return rows_compare(&rows->order, rows_at(rows, i), rows_at(rows, j)) > 0;
}

static void rows_swap(struct rows *rows, size_t i, size_t j)
{
	struct row row;

	memcpy(&row, rows_at(rows, i), rows->row_size);
	memcpy(rows_at(rows, i), rows_at(rows, j), rows->row_size);
	memcpy(rows_at(rows, j), &row, rows->row_size);
}

static void rows_sift_down(struct rows *rows, size_t i)
{
	for (size_t child; (child = 2 * i + 1) < rows->n; i = child) {
		if (child + 1 < rows->n && rows_is_after(rows, child + 1, child))
			child++;
		if (!rows_is_after(rows, child, i))
			return;
		rows_swap(rows, i, child);
	}
}

static int rows_append(struct rows *rows, const struct row *row)
{
	if (rows->n == rows->size) {
		size_t size = rows->size ? 2 * rows->size : FIRST_ROWS;
		char *all = reallocarray(rows->rows, size, rows->row_size);

		if (!all)
			return -ENOMEM;
		rows->rows = all;
		rows->size = size;
	}
	memcpy(rows_at(rows, rows->n++), row, rows->row_size);
	if (rows->n == rows->most)
		for (size_t i = rows->n / 2; i-- > 0;)
			rows_sift_down(rows, i);
	return 0;
}

int rows_add(struct rows *rows, const struct row *row)
{
	rows->added++;
	tally_add(&rows->sum, &row->tally);
	if (!rows->most || rows->n < rows->most)
		return rows_append(rows, row);
	if (rows_compare(&rows->order, row, rows_at(rows, 0)) < 0) {
		memcpy(rows_at(rows, 0), row, rows->row_size);
		rows_sift_down(rows, 0);
	}
	return 0;
}

int rows_add_group(struct rows *rows, const struct group *group, size_t value_size)
{
	struct row row = { .tally = group->tally };

	memcpy(row.value, group->value, value_size);
	return rows_add(rows, &row);
}

static int rows_compare_for_qsort(const void *a, const void *b, void *order)
{
	return rows_compare(order, a, b);
}

void rows_sort(struct rows *rows)
{
	if (rows->n)
		qsort_r(rows->rows, rows->n, rows->row_size,
			rows_compare_for_qsort, &rows->order);
}

struct tally rows_rest(const struct rows *rows, size_t n)
{
	struct tally rest = rows->sum;

	for (size_t i = 0; i < n; i++) {
		const struct tally *shown = &rows_at(rows, i)->tally;

		rest.flows -= shown->flows;
		rest.packets -= shown->packets;
		rest.bytes -= shown->bytes;
		rest.sent_packets -= shown->sent_packets;
		rest.sent_bytes -= shown->sent_bytes;
		rest.rtt_samples -= shown->rtt_samples;
		rest.rtt_sum_ns -= shown->rtt_sum_ns;
		rest.retransmits -= shown->retransmits;
	}
	return rest;
}

void rows_clear(struct rows *rows)
{
	rows->n = 0;
	rows->added = 0;
	rows->sum = (struct tally){ 0 };
}

void rows_free(struct rows *rows)
{
	free(rows->rows);
	*rows = (struct rows){ 0 };
}
