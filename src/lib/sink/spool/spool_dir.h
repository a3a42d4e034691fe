/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The directory of a spool on disk, and what a crash may leave in it:
 *
 *   lock                   held by the process that uses it, with mode 0600, so that no other can
 *   acked                  how far its records have got: struct spool_progress
 *   0000000000001000.seg   the segment whose first record has that number (hex)
 *   *.bad                  files that could not be used, for people to look at
 *
 * A segment goes only when an acked file that is behind its end is durable.
 */
#ifndef NETOBS_SINK_SPOOL_SPOOL_DIR_H
#define NETOBS_SINK_SPOOL_SPOOL_DIR_H

#include "base/log.h"
#include "segment.h"

#include <stddef.h>

/* Positions behind the last acknowledged record, and behind the last durable one. */
struct spool_progress {
	struct position acked, durable;
};

struct spool_dir {
	int fd;
	int lock_fd;	     /* -1: only the directory itself is locked */
	uint64_t *forgotten; /* first numbers of segments that may go */
	size_t n_forgotten;
};

/**
 * Make a directory, or take over one with its segments, in order. Errors are logged.
 *
 * @return 0; -EBUSY: another process uses it; -EPERM: others could change its files;
 *         -ELOOP: it is a symbolic link
 */
int spool_dir_open(const char *path, const struct log *log,
		   struct spool_dir **ret_dir, struct segment **ret_segments,
		   struct spool_progress *ret_progress);

/* NULL is fine. */
void spool_dir_close(struct spool_dir *dir);

/* Make a segment's file. */
int spool_dir_attach(const struct spool_dir *dir, struct segment *segment);

/* Remove the file of a segment that is not needed any more, with the next sync. */
void spool_dir_forget(struct spool_dir *dir, uint64_t first_seq);

/* The name of a segment's file. */
enum { SPOOL_NAME_SIZE = 32 };
void spool_dir_name(uint64_t first_seq, char name[SPOOL_NAME_SIZE]);

/* Save it for the next start, durably. */
int spool_dir_write_progress(int dir_fd, const struct spool_progress *progress);

/* ---- What a crash has left: spool_recover.c ---------------------------------- */

/*
 * Open the segments, in order. A record that was torn when the process died is cut off the
 * last one. A file that is no segment, or cannot be used, is renamed to *.bad, or
 * else passed over. Only the last segment and those that are not before @durable are
 * read: what is damaged in others is found when they are sent. Nothing here needs
 * room on the disk, and memory for no more than a window of a file.
 *
 * Errors are those of the process or of the directory, such as -EMFILE.
 */
int spool_recover(int dir_fd, const char *path, const struct log *log,
		  struct position durable, struct segment **ret_segments);

/* Rename an unusable file to @name.bad, and log that it @is so. */
void spool_set_aside(int dir_fd, const char *path, const struct log *log,
		     const char *name, const char *is);

#endif
