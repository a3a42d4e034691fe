/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Dropped packets of an interval, summed up for a table. */
#ifndef NETOBS_CLI_DROPS_DROP_ROWS_H
#define NETOBS_CLI_DROPS_DROP_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include <netobs/drop.h>

struct drop_rows {
	struct netobs_drop *drops; /* the row's sum; the tuple is the largest flow's */
	uint32_t n, capacity;
	bool is_out_of_memory;
};

void drop_rows_add(struct drop_rows *rows, const struct netobs_drop *drop);

/** Sum up those of the same reason, place and interface, and with @by_flow of the same flow; the most
 *  packets come first. */
void drop_rows_sum(struct drop_rows *rows, bool by_flow);

/**
 * @param most   rows to print; 0: all
 * @param width  of the line, at most; 0: there is no limit
 */
void drop_rows_print(const struct drop_rows *rows, bool by_flow, uint32_t most,
		     uint32_t width);

void drop_rows_clear(struct drop_rows *rows);

#endif
