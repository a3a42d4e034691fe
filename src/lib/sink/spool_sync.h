/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What has to be done with a spool's files and waited for: one piece of work that
 * knows all it needs, so that a thread may do it.
 */
#ifndef NETOBS_LIB_SINK_SPOOL_SYNC_H
#define NETOBS_LIB_SINK_SPOOL_SYNC_H

#include "mark.h"

#include <stdbool.h>
#include <stddef.h>

struct sync_work {
	int dir_fd;
	int *fds; /* files to be written to the disk */
	size_t n_fds;
	bool has_new_files;
	struct mark durable; /* all before it is in those files, or was before */
	struct mark acked;
	bool is_ack_new;
	uint64_t *forgotten; /* segments to be removed, once acked is durable */
	size_t n_forgotten;

	int err; /* the result */
};

/* The descriptors are the work's own. NULL: -ENOMEM, -EMFILE. */
struct sync_work *sync_work_new(int dir_fd, size_t n_fds);
int sync_work_add(struct sync_work *work, int fd);

/* For a worker: a struct sync_work. */
void sync_work_free(void *work);
void sync_work_do(void *work);

#endif
