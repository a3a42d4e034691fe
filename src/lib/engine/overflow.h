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

/* Receives an entry; it is no longer in the table. */
typedef void overflow_entry_fn(void *ctx, const struct flow_entry *entry);

struct overflow {
	uint32_t room; /* of a table, in pages */
	uint32_t part; /* of a CPU's pages, one of OVERFLOW_PARTS */
	int fds[GENERATIONS];
	struct overflow_batch *batch; /* while a table is read */
	uint32_t position;	      /* of the kernel, in the table */
};

/** @return the room that overflow_init() makes for these */
uint32_t overflow_choose_room(uint64_t max_flows, uint64_t max_bytes);

/**
 * @param outer_fd   the map that the programs find them in; stays the caller's
 * @param max_flows  in an interval
 * @param max_bytes  of the tables, full ones; 0: no limit
 * @return 0, or -errno
 */
int overflow_init(struct overflow *overflow, int outer_fd, uint64_t max_flows,
		  uint64_t max_bytes);

/** The tables that @pinned has, which stay pinned. @return 0, or -errno */
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

/** @return the memory of empty tables, in bytes, about */
uint64_t overflow_bytes(const struct overflow *overflow);

#endif
