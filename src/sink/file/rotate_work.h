/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What has to be done with rotated files and waited for, by a worker: put them on the
 * disk, give them their final names, and remove the oldest.
 */
#ifndef NETOBS_SINK_FILE_ROTATE_WORK_H
#define NETOBS_SINK_FILE_ROTATE_WORK_H

#include "sink/mark.h"
#include "rotate_names.h"

#include <stdbool.h>
#include <stdint.h>

/* A file that is complete, NAME.part. */
struct rotate_file {
	struct rotate_file *next;
	int fd;
	rotate_name name; /* the final one, as was intended */
};

struct rotate_work {
	const struct rotate_names *names;
	struct rotate_file *files; /* those that are left are to be done again */
	bool recovers; /* look for what crashes have left; false when it is done */
	uint32_t keep; /* files; 0: all */
	bool is_sync;  /* records before @durable are to be on the disk */
	int part_fd; /* the file that has the last of them; -1: @files have them */
	struct mark durable;
	uint32_t epoch;

	/* The results. */
	int err;
	bool is_synced;		    /* they are */
	bool is_lost;		    /* who knows what of part_fd is */
	uint64_t finished, removed; /* files */
};

void rotate_work_free(void *work);
void rotate_work_do(void *work);

/* Move a file within its directory, but not over another. */
int rotate_move(int dir_fd, const char *from, const char *to);

#endif
