/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The shared tables of both generations (L2): made, put in the programs' way,
 * added to while flows come, replaced when they are at rest, and read.
 */
#ifndef NETOBS_ENGINE_TABLES_H
#define NETOBS_ENGINE_TABLES_H

#include "bpf/types.h"
#include "base/log.h"
#include "tuning.h"

#include <stdbool.h>
#include <stddef.h>

struct table {
	int fd; /* -1: none of that level */
	uint32_t n_buckets;
	bool is_superseded; /* empty, and goes when the newest is in place */
	struct flow_bucket *buckets; /* mapped while entries are added; or NULL */
};

struct tables {
	const struct log *log;
	int outer_fd;		    /* the map that the programs find them in */
	struct table_state *states; /* mapped, one per generation */
	uint64_t max_flows;
	uint64_t max_bytes; /* 0: no matter */
	struct tuning tuning;
	uint64_t inserts[GENERATIONS]; /* by tables_add() */
	/* A table that is being made; NULL: none. */
	struct map_call *making;
	struct making_goal {
		uint32_t generation;
		uint32_t n_buckets;
		bool is_growth;
		uint64_t inserts; /* is_growth: when it began */
		int64_t start_ns;
	} goal;
	struct table levels[GENERATIONS][TABLE_LEVELS];
};

/* @outer_fd and @states stay the caller's. At most @max_bytes; 0: no matter. */
int tables_init(struct tables *tables, int outer_fd, struct table_state *states,
		uint64_t max_flows, uint64_t max_bytes, const struct log *log);
void tables_done(struct tables *tables);

/*
 * Begin to add a table to a generation that is written to; no other is being
 * made. -ENOSPC: a cap is reached; -ENOMEM ...
 */
int tables_grow(struct tables *tables, uint32_t generation);

/*
 * Of a generation at rest, and empty: begin to make what the next interval is
 * likely to need of what the last one left; no other table is being made. What
 * has become too much goes the next time.
 */
void tables_fit(struct tables *tables, uint32_t generation);

static inline bool tables_is_making(const struct tables *tables)
{
	return tables->making;
}

/*
 * Put the table that was being made in place, if it is made. -EAGAIN: it is not
 * yet; 0: nothing is left to do; others: it could not be made.
 */
int tables_step(struct tables *tables);

/* The same, but wait. */
int tables_finish(struct tables *tables);

/**
 * Add an entry to its flow's in the newest table, as the programs do, and while they do.
 *
 * @param hash  of the entry's key, with the programs' secret
 * @return whether there was room
 */
bool tables_add(struct tables *tables, uint32_t generation,
		const struct flow_entry *entry, uint64_t hash);

/** Have processors load what tables_add() is going to look at. */
void tables_prefetch(struct tables *tables, uint32_t generation, uint64_t hash);

/* Of a generation at rest, which was read: nothing will be added for now. */
void tables_rest(struct tables *tables, uint32_t generation);

/* The memory of all tables, in bytes. */
uint64_t tables_bytes(const struct tables *tables);

/*
 * Buckets of a table, mapped. NULL: errno. In pieces, because mapped pages count
 * as memory of this process.
 */
struct flow_bucket *tables_map(const struct table *table, uint32_t first,
			       uint32_t n);
void tables_unmap(struct flow_bucket *buckets, uint32_t n);

#endif
