/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The reader of the CPUs' logs: reports their records, slice by slice, in the order of
 * each CPU. Unread slots are occupied: programs that find no others take the overflow
 * table.
 */
#ifndef NETOBS_ENGINE_LOGS_H
#define NETOBS_ENGINE_LOGS_H

#include "store.h"

#include <stdbool.h>

/**
 * Receives slots with records, the first of which is complete.
 *
 * @param is_left  a drain before had to leave them
 * @return slots of records that were taken, in their order; a last record of which only
 *         the first half is here is left. 0: the first one was refused, and stays in the
 *         log
 */
typedef size_t logs_records_fn(void *ctx, const struct log_slot *slots,
			       size_t n, bool is_left);

enum { LOGS_WAIT_MS = 1 }; /* while a log settles */

struct logs {
	struct store *store;
	logs_records_fn *on_records;
	void *ctx;
	/* Heads: up to where a log may be read, and how far it was at noted_ns. */
	struct log_heads {
		uint64_t readable;
		uint64_t noted;
		uint64_t left; /* to here, records may be those of a drain before */
		uint64_t unread; /* to there, the drain that is under way left some */
	} * heads;
	/* The log and the position of the records that on_records() gets. */
	uint32_t cpu;
	uint64_t at;
	int64_t noted_ns;
	bool is_settling; /* noted are those of logs_settle() */
	uint32_t next;	  /* the log to read first */
};

/** @return 0, or -ENOMEM */
int logs_init(struct logs *logs, struct store *store,
	      logs_records_fn *on_records, void *ctx);
void logs_done(struct logs *logs);

/**
 * Read from the logs that fill up.
 *
 * @param max_slots  of all of them together, or one more; 8,000 take a millisecond
 * @return whether one is still so full that the reader should go on in a millisecond
 */
bool logs_read(struct logs *logs, uint32_t max_slots);

/** @return whether a log has so much to read that its programs gave notice */
bool logs_are_filling(const struct logs *logs);

/*
 * Free @n of the slots that on_records() has got before it returns: their records, which it has
 * copied, are not in the log if the process is killed.
 */
void logs_release(const struct logs *logs, size_t n);

/**
 * A generation is at rest: all its records are in the logs.
 *
 * @param has_writers  other CPUs wrote them, so they may be read LOGS_WAIT_MS later
 */
void logs_settle(struct logs *logs, bool has_writers);

/**
 * Read from the records of a generation at rest.
 *
 * @param max_slots  as for logs_read()
 * @return 1: there may be more; 0: there are no more; -errno: a log cannot be mapped,
 *         -ENOMEM also: one begins with a record that is refused; its records stay there
 */
int logs_complete(struct logs *logs, uint32_t generation, uint32_t max_slots);

#endif
