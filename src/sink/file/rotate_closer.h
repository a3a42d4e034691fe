/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The part of a rotated file that has to do with the disk: it has complete files
 * finished, what is written synced, and acknowledges the records.
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
	rotate_name name; /* the final one, as was intended */
};

struct worker;
struct rotate_work;

struct file_closer {
	struct sink_host *host;
	const struct rotate_names *names;
	char *path; /* for people */
	uint32_t keep;
	int64_t sync_ms; /* 0: what is written counts as delivered */

	struct worker *worker;
	struct rotate_work *next; /* what is to be done next */
	size_t n_waiting;	  /* files in it */
	struct backoff retry;
	struct outage outage;

	bool has_unsynced;
	struct position written; /* behind the last record in a file */
	int64_t due_ms;		 /* when it is to be synced */
	uint32_t epoch; /* what was begun in another one is of no use */
	bool is_lost;	/* what was written did not get to the disk */

	uint64_t finished, removed; /* files */
};

/* @names stay the caller's. Errors: -ENOMEM, -EMFILE. */
int closer_open(struct file_closer *closer, struct sink_host *host,
		const struct rotate_names *names, const char *path,
		uint32_t keep, int64_t sync_ms);

/* Do what is left, and wait for it. Half-built is fine. */
void closer_close(struct file_closer *closer);

/* Take what is done, and have done what is to be done. @part_fd: or -1. */
void closer_process(struct file_closer *closer, int part_fd);

/* When it is to be tended anyway, as wake_in() has it. */
int closer_wait_ms(const struct file_closer *closer);

/* A complete file, the closer's from now on. */
void closer_add(struct file_closer *closer, struct rotate_file *file);

/* The records before @end are written. */
void closer_written(struct file_closer *closer, struct position end);

/*
 * Look for files that crashes have left, of which one may have been in the way of the
 * new part. What is not acknowledged will be written again.
 */
void closer_start_over(struct file_closer *closer);

#endif
