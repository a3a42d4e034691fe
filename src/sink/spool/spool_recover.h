/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a spool's directory holds after a crash, or worse. */
#ifndef NETOBS_SINK_SPOOL_SPOOL_RECOVER_H
#define NETOBS_SINK_SPOOL_SPOOL_RECOVER_H

#include "base/log.h"
#include "segment.h"

/*
 * The segments, in order. What was being written when the process died is cut off
 * the last one. A file that is no segment, or cannot be used, is renamed to *.bad, or
 * else passed over. Only the last segment and those that are not before @durable are
 * read: what is damaged in others is found when they are sent. Nothing here needs
 * room on the disk, and memory for no more than a window of a file.
 *
 * Errors are those of the process or of the directory, such as -EMFILE.
 */
int spool_recover(int dir_fd, const char *path, const struct log *log,
		  struct mark durable, struct segment **ret_segments);

/* Rename what cannot be used to @name.bad, and log that it @is so. */
void spool_set_aside(int dir_fd, const char *path, const struct log *log,
		     const char *name, const char *is);

#endif
