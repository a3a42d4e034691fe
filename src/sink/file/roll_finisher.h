/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The part of a rotated file that has to do with the disk: it has complete files
 * finished, what is written synced, and acknowledges the records.
 */
#ifndef NETOBS_SINK_FILE_ROLL_FINISHER_H
#define NETOBS_SINK_FILE_ROLL_FINISHER_H

#include "base/backoff.h"
#include "base/outage.h"
#include "sink/module.h"
#include "roll_work.h"

struct worker;

struct finisher {
	struct sink_host *host;
	const struct roll_names *names;
	char *path; /* for people */
	uint32_t keep;
	int64_t sync_ms; /* 0: what is written counts as delivered */

	struct worker *worker;
	struct roll_work *next; /* what is to be done next */
	size_t n_waiting;	/* files in it */
	struct backoff retry;
	struct outage outage;

	bool has_unsynced;
	struct mark written; /* behind the last record in a file */
	int64_t due_ms;	     /* when it is to be synced */
	uint32_t epoch;	     /* what was begun in another one is of no use */
	bool is_lost;	     /* what was written did not get to the disk */

	uint64_t finished, removed; /* files */
};

/* @names stay the caller's. Errors: -ENOMEM, -EMFILE. */
int finisher_open(struct finisher *finisher, struct sink_host *host,
		  const struct roll_names *names, const char *path,
		  uint32_t keep, int64_t sync_ms);

/* Do what is left, and wait for it. Half-built is fine. */
void finisher_close(struct finisher *finisher);

/* Take what is done, and have done what is to be done. @part_fd: or -1. */
void finisher_tend(struct finisher *finisher, int part_fd);

/* When it is to be tended anyway, as wake_in() has it. */
int finisher_wait_ms(const struct finisher *finisher);

/* A complete file, the finisher's from now on. */
void finisher_add(struct finisher *finisher, struct roll_file *file);

/* The records before @end are written. */
void finisher_written(struct finisher *finisher, struct mark end);

/* What is not acknowledged will be written again. */
void finisher_forget(struct finisher *finisher);

#endif
