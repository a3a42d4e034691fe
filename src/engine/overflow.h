/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The overflow tables of both generations, where entries go while a log is full. They
 * have room for as many entries as there were flows in an interval: how many come while
 * this process stands still is not known before, and a flow that several CPUs see takes an
 * entry of each. Without entries they consist of their buckets, 16 bytes each; the kernel
 * takes memory for entries as they come.
 */
#ifndef NETOBS_ENGINE_OVERFLOW_H
#define NETOBS_ENGINE_OVERFLOW_H

#include "bpf/types.h"

#include <stdbool.h>
#include <stdint.h>

/** Receives an entry; it is no longer in the table. */
typedef void overflow_entry_fn(void *ctx, const struct flow_entry *entry);

struct overflow {
	int outer_fd;	   /* the map that the programs find them in */
	uint32_t min_room; /* of a table, in entries */
	uint32_t max_room;
	uint64_t peak; /* flows in an interval; those of long ago fade */
	struct overflow_table {
		int fd;
		uint32_t room;
		int replaced_fd; /* may have entries of before it was replaced; or -1 */
		uint32_t replaced_room;
		struct map_call *replacing; /* a larger or smaller one; or NULL */
		uint32_t next_room;
		bool is_refused; /* it could not be replaced in this interval */
	} tables[GENERATIONS];
	struct overflow_batch *batch; /* while a table is read */
	uint32_t position;	      /* of the kernel, in the table */
};

/**
 * @param outer_fd   stays the caller's
 * @param max_flows  in an interval
 * @param max_bytes  of the tables, full ones; 0: no limit
 * @return 0, or -errno
 */
int overflow_init(struct overflow *overflow, int outer_fd, uint64_t max_flows,
		  uint64_t max_bytes);
void overflow_done(struct overflow *overflow);

/**
 * Take some hundred entries out of the table of a generation at rest.
 *
 * @return 1: there may be more; 0: there are no more; -EAGAIN: the kernel is replacing
 *         the table, so try again in a millisecond; or -errno: those that are left
 *         can be read later
 */
int overflow_take(struct overflow *overflow, uint32_t generation,
		  overflow_entry_fn *on_entry, void *ctx);

/**
 * Of a generation at rest, whose entries were taken: replace its table, in the
 * background, if it does not suit an interval of so many flows.
 */
void overflow_fit(struct overflow *overflow, uint32_t generation, uint64_t flows);

/**
 * More flows have come to a generation that is written to than its table has room for:
 * replace it, in the background, once in an interval at most.
 */
void overflow_expect(struct overflow *overflow, uint32_t generation,
		     uint64_t flows);

/** @return the memory of the tables, in bytes, about; entries take more */
uint64_t overflow_bytes(const struct overflow *overflow);

#endif
