/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Dropped packets of an interval, summed up for a table. */
#ifndef NETOBS_CLI_DROPS_DROP_ROWS_H
#define NETOBS_CLI_DROPS_DROP_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include <netobs/drop.h>

#include "service/options/args.h"

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

/* ---- Drop counters --------------------------------------------------------------------- */

/*
 * Drop counters of interfaces of this network namespace: drops by network cards and drivers, before or
 * after the packets are the kernel's. Some drops of the kernel are in rx_dropped and tx_dropped, too.
 */

struct ifaddrs;

struct drop_counters {
	struct ifaddrs *before; /* counters as last printed; NULL: not printed yet */
};

/** @return whether @names have @name, or are none */
bool is_selected(const struct args_list *names, const char *name);

/* Print a line for each interface of @names whose counters have grown since the last call; nothing in the first. */
void drop_counters_print(struct drop_counters *counters,
			 const struct args_list *names);

void drop_counters_clear(struct drop_counters *counters);

#endif
