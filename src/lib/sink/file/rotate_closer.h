/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The part of a rotated file that waits for the disk: a worker finishes complete files and
 * syncs the others; then their records are acknowledged.
 */
#ifndef NETOBS_SINK_FILE_ROTATE_CLOSER_H
#define NETOBS_SINK_FILE_ROTATE_CLOSER_H

#include "base/backoff.h"
#include "base/outage.h"
#include "rotate_part.h"
#include "sink/module.h"

/* A file that is complete, NAME.part. */
struct rotate_file {
	struct rotate_file *next;
	int fd;
	rotate_name name; /* the intended final one */
};

struct worker;
struct rotate_work;

struct file_closer {
	struct sink_host *host;
	const struct rotate_names *names;
	char *path; /* for people */
	uint32_t keep;
	int64_t sync_ms; /* 0: written records count as delivered */

	struct worker *worker;
	struct rotate_work *next; /* the worker's next one */
	size_t n_waiting;	  /* files in it */
	struct backoff retry;
	struct outage outage;

	bool has_unsynced;
	struct position written; /* behind the last record in a file */
	int64_t due_ms;		 /* when it is to be synced */
	uint32_t epoch; /* results of work from another one are discarded */
	bool is_lost;	/* written records are not on the disk */

	uint64_t finished, removed; /* files */
};

/* @names stay the caller's. Errors: -ENOMEM, -EMFILE. */
int closer_open(struct file_closer *closer, struct sink_host *host,
		const struct rotate_names *names, const char *path,
		uint32_t keep, int64_t sync_ms);

/* Do the remaining work, and wait for it. Half-built is fine. */
void closer_close(struct file_closer *closer);

/* Take results, and begin the next work. @part_fd: of the file that is written, or -1. */
void closer_process(struct file_closer *closer, int part_fd);

/** @return when closer_process() has to be called at the latest, as for wake_in() */
int closer_wait_ms(const struct file_closer *closer);

/* Finish a complete file, which is the closer's from now on. */
void closer_add(struct file_closer *closer, struct rotate_file *file);

/* The records before @end are written. */
void closer_written(struct file_closer *closer, struct position end);

/*
 * Look for files that crashes have left; one of them may be in the way of the new part.
 * Records that are not acknowledged will be written again.
 */
void closer_start_over(struct file_closer *closer);

#endif
