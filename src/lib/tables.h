/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The shared tables of both generations (L2): made, put in the programs' way,
 * added to while flows come, replaced when they are at rest, and read.
 */
#ifndef NETOBS_LIB_TABLES_H
#define NETOBS_LIB_TABLES_H

#include "bpf/types.h"
#include "log.h"
#include "tuning.h"

#include <stdbool.h>
#include <stddef.h>

struct table {
	int fd; /* -1: none of that level */
	uint32_t n_buckets;
	bool is_superseded; /* empty, and goes when the newest is in place */
};

struct tables {
	const struct log *log;
	int outer_fd;		    /* the map that the programs find them in */
	struct table_state *states; /* mapped, one per generation */
	uint64_t max_flows;
	uint64_t max_bytes; /* 0: no matter */
	/* What cannot wait until a large table is made; may be NULL. */
	void (*meanwhile)(void *ctx);
	void *ctx;
	struct tuning tuning;
	struct table levels[GENERATIONS][TABLE_LEVELS];
};

/* @outer_fd and @states stay the caller's. At most @max_bytes; 0: no matter. */
int tables_init(struct tables *tables, int outer_fd, struct table_state *states,
		uint64_t max_flows, uint64_t max_bytes, const struct log *log);
void tables_done(struct tables *tables);

/*
 * Add a table to a generation that is written to; the programs use it from now
 * on. -ENOSPC: a cap is reached; -ENOMEM ...
 */
int tables_grow(struct tables *tables, uint32_t generation);

/*
 * Of a generation at rest, and empty: make what the next interval is likely to
 * need of what the last one left. What has become too much goes the next time.
 */
void tables_fit(struct tables *tables, uint32_t generation);

/* The memory of all tables, in bytes. */
uint64_t tables_bytes(const struct tables *tables);

/*
 * Buckets of a table, mapped: the first of a multiple of TUNING_BUCKETS_UNIT,
 * at most @n. NULL: errno. In pieces, because mapped pages count as memory of
 * this process.
 */
struct flow_bucket *tables_map(const struct table *table, uint32_t first,
			       uint32_t n);
void tables_unmap(struct flow_bucket *buckets, uint32_t n);

#endif
