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
 * @param is_left  an earlier drain had to leave these records
 * @return the number of slots taken, from the first on. A last record of which only the first half
 *         is in @slots is left. 0: the first record was refused, and stays in the log
 */
typedef size_t logs_records_fn(void *ctx, const struct log_slot *slots,
			       size_t n, bool is_left);

enum { LOGS_WAIT_MS = 1 }; /* while a log settles */

struct logs {
	struct store *store;
	logs_records_fn *on_records;
	void *ctx;
	/* Positions in the log of a CPU: it may be read up to readable; noted was its head at noted_ns. */
	struct log_heads {
		uint64_t readable;
		uint64_t noted;
		uint64_t left; /* records before this position may be of an earlier drain */
		uint64_t unread; /* the current drain left some records before this position */
	} * heads;
	/* The CPU of the log and the position of the records that on_records() gets. */
	uint32_t cpu;
	uint64_t at;
	int64_t noted_ns;
	bool is_settling; /* `noted` are the heads as of logs_settle() */
	uint32_t next;	  /* the log to read first */
};

/** @return 0, or -ENOMEM */
int logs_init(struct logs *logs, struct store *store,
	      logs_records_fn *on_records, void *ctx);
void logs_done(struct logs *logs);

/**
 * Read from the logs that are filling up.
 *
 * @param max_slots  limit for all logs together, exceeded by one at most; 8,000 slots take a
 *                   millisecond
 * @return whether to call this again in a millisecond: a log is still filling up
 */
bool logs_read(struct logs *logs, uint32_t max_slots);

/** @return whether a log has so many records that programs gave notice */
bool logs_are_filling(const struct logs *logs);

/*
 * For on_records(), before it returns: free the first @n of its slots, whose records it has copied.
 * If the process is killed later, these records are not in the log any more.
 */
void logs_release(const struct logs *logs, size_t n);

/**
 * Call when a generation is at rest: all its records are in the logs.
 *
 * @param has_writers  other CPUs wrote the records, which become readable LOGS_WAIT_MS later
 */
void logs_settle(struct logs *logs, bool has_writers);

/**
 * Read from the records of a generation at rest.
 *
 * @param max_slots  as for logs_read()
 * @return 1: there may be more; 0: there are no more; -errno: a log cannot be mapped, or (-ENOMEM)
 *         its first record was refused; its records stay in it
 */
int logs_complete(struct logs *logs, uint32_t generation, uint32_t max_slots);

#endif
