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
void sync_work_free(struct sync_work *work);

void sync_work_do(struct sync_work *work);

/* Somebody who does it. */
struct syncer;

int syncer_new(struct syncer **ret_syncer);

/* A piece of work that is under way is finished by whoever does it. */
void syncer_free(struct syncer *syncer);

/* Polls readable when there is something to be taken. */
int syncer_fd(const struct syncer *syncer);

/* Takes @work over. Errors: as pthread_create(3), then it remains the caller's. */
int syncer_start(struct syncer *syncer, struct sync_work *work);

bool syncer_is_busy(const struct syncer *syncer);

/* The work that is done, the caller's again; NULL: none is. */
struct sync_work *syncer_take(struct syncer *syncer);

#endif
