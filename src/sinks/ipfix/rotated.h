/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A file that is followed by another now and then: instead of DIR/flows.ipfix it is
 *
 *   flows-20261121T164500Z.ipfix.part	while it is written
 *   flows-20261121T164500Z.ipfix	once it is whole and on disk
 *
 * Errors are -errno.
 */
#ifndef NETOBS_SINKS_IPFIX_ROTATED_H
#define NETOBS_SINKS_IPFIX_ROTATED_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

/* What threads do for it that wait for the disk. */
struct rotated_jobs {
	pthread_mutex_t lock;
	pthread_cond_t is_done;
	unsigned int running;
};

struct rotated {
	struct rotated_jobs jobs;
	int fd; /* -1: there is none */
	bool has_part;
	char name[PATH_MAX]; /* when it is whole */
};

/* Before any of the others. */
void rotated_init(struct rotated *file);

/* @rotate: or else it is PATH itself, which is made, or emptied. */
int rotated_open(struct rotated *file, const char *path, bool rotate);

/*
 * No more is written to it. @keep: or else it is removed, if it is one of several.
 * A thread waits for the disk.
 */
void rotated_finish(struct rotated *file, bool keep);

/* What a crash has left of others of @path: a thread cuts and finishes it. */
void rotated_recover(struct rotated *file, const char *path);

/* Waits for the threads. */
void rotated_close(struct rotated *file);

/* ---- Between rotated.c and rotated_recover.c ---- */

#define ROTATED_PART ".part"

/* DIR/STEM and .EXT of DIR/STEM.EXT: how long the first is, and where the other begins. */
int rotated_split(const char *path, const char **ret_extension);

/* Have it on disk, and under its final name; closes @fd. */
void rotated_complete(int fd, const char *part, const char *name);

/* Run @run(@arg) in a thread, or where there can be none, here. */
void rotated_run(struct rotated_jobs *jobs, void *(*run)(void *arg), void *arg);
void rotated_done(struct rotated_jobs *jobs);

#endif
