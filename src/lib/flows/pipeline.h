/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records of the logs are folded as they come. One drain from end to end: flip the
 * generation, wait until it settles, read the rest of it, merge it, report, and balance the books.
 * In steps, none of which blocks for long.
 */
#ifndef NETOBS_FLOWS_PIPELINE_H
#define NETOBS_FLOWS_PIPELINE_H

#include "pipeline_books.h"
#include "pipeline_restart.h"

int pipeline_init(struct pipeline *pipeline,
		  const struct pipeline_options *options,
		  const struct host *host, const struct log *log);
void pipeline_done(struct pipeline *pipeline);

/*
 * Start a drain of what was seen before @now_ns; none is under way. Behind a MERGE_FINAL one
 * comes another if an earlier drain could not read all of its generation.
 */
void pipeline_begin(struct pipeline *pipeline, enum merge_mode mode,
		    int64_t now_ns);

enum pipeline_relief {
	PIPELINE_RELIEVED,
	PIPELINE_BEHIND, /* call again in PIPELINE_BEHIND_MS */
	PIPELINE_FULL,	 /* only a drain makes room */
};

enum { PIPELINE_BEHIND_MS = 1 };

/** @return a descriptor that is readable when pipeline_read_sockets() is due; -1: none ever is */
int pipeline_sockets_fd(const struct pipeline *pipeline);

/** Read what programs report about sockets. @return whether there is more */
bool pipeline_read_sockets(struct pipeline *pipeline);

/** @return a descriptor that wakes when pipeline_read_nat() is due (EPOLLET); -1: it never is */
int pipeline_nat_fd(const struct pipeline *pipeline);

/* @return a descriptor that wakes when sockets have reported connects; -1: it never does */
int pipeline_connects_fd(const struct pipeline *pipeline);

/* Read what programs report about translations. */
void pipeline_read_nat(struct pipeline *pipeline);

/* Logs fill up: fold records. */
enum pipeline_relief pipeline_relieve(struct pipeline *pipeline);

/* Fold records until no log is full. False: PIPELINE_FULL. */
bool pipeline_relieve_now(struct pipeline *pipeline);

/*
 * Work on the drain for about a millisecond. False: it is over; true: call again
 * in pipeline_wait_ms().
 */
bool pipeline_step(struct pipeline *pipeline);

/* Complete the drain that is under way, if any. Waits, where a context steps. */
void pipeline_finish(struct pipeline *pipeline);

#endif
