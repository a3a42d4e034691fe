/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The overflow tables of both generations, where entries go while a log is full. Empty
 * ones consist of 16 bytes for each page that they have room for; the kernel takes
 * memory for pages as flows come, see struct overflow_page.
 */
#ifndef NETOBS_ENGINE_OVERFLOW_H
#define NETOBS_ENGINE_OVERFLOW_H

#include "bpf/types.h"
#include "pinned.h"

#include <stdint.h>

/* Receives an entry that was removed from the table. */
typedef void overflow_entry_fn(void *ctx, const struct flow_entry *entry);

struct overflow {
	uint32_t room; /* pages of a table */
	uint32_t part; /* pages in each of a CPU's OVERFLOW_PARTS parts */
	int fds[GENERATIONS];
	struct overflow_batch *batch; /* while a table is read */
	uint32_t position;	      /* the kernel's cursor in the table */
};

/** @return the pages of a table that overflow_init() makes with these limits, a power of two */
uint32_t overflow_choose_room(uint64_t max_flows, uint64_t max_bytes);

/**
 * @param outer_fd   the programs' map of overflow tables; stays the caller's
 * @param max_flows  in an interval
 * @param max_bytes  of both tables when full; 0: no limit
 * @return 0, or -errno
 */
int overflow_init(struct overflow *overflow, int outer_fd, uint64_t max_flows,
		  uint64_t max_bytes);

/** Use the tables of @pinned, which stay pinned. @return 0, or -errno */
int overflow_adopt(struct overflow *overflow, const struct pinned *pinned);

/** Pin the tables. @return 0, or -errno */
int overflow_pin(const struct overflow *overflow, const struct pinned *pinned);

void overflow_done(struct overflow *overflow);

/**
 * Take some hundred entries out of the table of a generation at rest.
 *
 * @return 1: there may be more; 0: there are no more; or -errno: those that are left can
 *         be read later
 */
int overflow_take(struct overflow *overflow, uint32_t generation,
		  overflow_entry_fn *on_entry, void *ctx);

/** @return memory of empty tables in bytes, estimated */
uint64_t overflow_bytes(const struct overflow *overflow);

#endif
