/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What has to be done with a spool's files and waited for: one piece of work that
 * knows all it needs, so that a thread may do it.
 *
 * A sync that fails is reported once, and after that the kernel takes what it was to
 * save for saved. So its result holds for what was asked of it, never for later:
 * what failed is in doubt, and is done again before another sync can vouch for it.
 */
#ifndef NETOBS_SINK_SPOOL_SPOOL_SYNC_H
#define NETOBS_SINK_SPOOL_SPOOL_SYNC_H

#include "spool_dir.h"

#include <stdbool.h>
#include <stddef.h>

/* A segment's file. */
struct sync_file {
	int fd;
	int to_fd; /* a new file to be made of it; -1: none */
	uint64_t first_seq;
	uint64_t from, to; /* of its records, what is to become durable */
	struct mark end;   /* behind these */
	bool is_in_doubt;
	bool is_named;
	bool is_damaged;
	int err; /* the result */
};

struct sync_work {
	int dir_fd;
	struct sync_file *files;
	size_t n_files;
	bool are_names_in_doubt;
	bool is_dir_new;
	struct spool_progress before, after; /* @after: if all of it succeeds */
	bool is_progress_due;
	uint64_t *forgotten; /* segments to be removed, once acked is durable */
	size_t n_forgotten;
	int write_err; /* not all could be written that was to be saved */

	/* The results. */
	int names_err;
	struct spool_progress noted;
	size_t n_removed;
	int err; /* the first of all */
};

/* The descriptors are the work's own. NULL: -ENOMEM, -EMFILE. */
struct sync_work *sync_work_new(int dir_fd, size_t n_files);

/* @file, whose to_fd it takes over, but for its descriptor: a copy of @fd. */
int sync_work_add(struct sync_work *work, const struct sync_file *file, int fd);

/* For a worker: a struct sync_work. */
void sync_work_free(void *work);
void sync_work_do(void *work);

#endif
