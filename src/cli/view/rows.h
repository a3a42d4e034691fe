/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The first rows, in some order, of any number of flows or groups of them. */
#ifndef NETOBS_CLI_ROWS_H
#define NETOBS_CLI_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "group/group.h"

/* A flow, or a group of them; outlives the record. */
struct row {
	struct tally tally;
	union {
		struct flow_tuple flow;
		uint8_t value[BY_SIZE]; /* of a group */
	};
	char info[24], where[128],
		process[64]; /* of a flow; there is no room for them in a group's */
};

enum sort {
	SORT_BYTES,
	SORT_PACKETS,
	SORT_FLOWS,
	SORT_SENT,
	SORT_RTT,
	SORT_RETRANSMITS,
	SORT_DURATION,
	SORT_TIME, /* from here on the smallest first */
	SORT_VALUE,
};

/* Only rows of TCP have it, where it is measured. */
static inline bool sort_is_of_rtt(enum sort sort)
{
	return sort == SORT_RTT || sort == SORT_RETRANSMITS;
}

struct order {
	enum sort sort;
	size_t offset, size; /* of SORT_VALUE: part of the value */
};

struct rows {
	struct order order;
	char *rows; /* once there are @most: a heap, the last one on top */
	size_t row_size, n, size, most;
	uint64_t added;
	struct tally sum; /* of all that were added */
};

/**
 * @are_flows  and not groups
 * @most       0: as many as are added
 */
void rows_init(struct rows *rows, const struct order *order, bool are_flows,
	       size_t most);

static inline struct row *rows_at(const struct rows *rows, size_t i)
{
	return (struct row *)(rows->rows + i * rows->row_size);
}

/** @return 0; -ENOMEM */
int rows_add(struct rows *rows, const struct row *row);

/** @return 0; -ENOMEM */
int rows_add_group(struct rows *rows, const struct group *group,
		   size_t value_size);

/** The first one first. Nothing can be added until rows_clear(). */
void rows_sort(struct rows *rows);

/** @return the sum of all but the first @n rows */
struct tally rows_rest(const struct rows *rows, size_t n);

void rows_clear(struct rows *rows);
void rows_free(struct rows *rows);

#endif
