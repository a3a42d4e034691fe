/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The reader of the CPUs' logs: adds their records to the shared tables, slice by slice,
 * for as long as there is room in these. What is left in a log is what the programs find
 * occupied when they append; they add to the tables themselves then.
 */
#ifndef NETOBS_ENGINE_LOGS_H
#define NETOBS_ENGINE_LOGS_H

#include "store.h"

#include <stdbool.h>

/**
 * Receives an entry that the tables have no room for.
 *
 * @return whether it was taken; if not, it stays in the log
 */
typedef bool logs_refused_fn(void *ctx, uint32_t generation,
			     const struct flow_entry *entry);

struct logs {
	struct store *store;
	logs_refused_fn *on_refused;
	void *ctx;
	/* Heads: up to where a log may be read, and how far it was at noted_ns. */
	struct log_heads {
		uint64_t readable;
		uint64_t noted;
	} * heads;
	int64_t noted_ns;
};

/** @return 0, or -ENOMEM */
int logs_init(struct logs *logs, struct store *store,
	      logs_refused_fn *on_refused, void *ctx);
void logs_done(struct logs *logs);

/**
 * Read a slice of the logs that fill up.
 *
 * @return whether one is still so full that the reader should go on in a millisecond
 */
bool logs_read(struct logs *logs);

/** A generation is at rest: all its records are in the logs, and may be read. */
void logs_settle(struct logs *logs);

/**
 * Read a slice of the records of a generation at rest.
 *
 * @return whether there are more
 */
bool logs_complete(struct logs *logs, uint32_t generation);

#endif
