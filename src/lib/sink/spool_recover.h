/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a spool's directory holds after a crash, or worse. */
#ifndef NETOBS_LIB_SINK_SPOOL_RECOVER_H
#define NETOBS_LIB_SINK_SPOOL_RECOVER_H

#include "log.h"
#include "segment.h"

/*
 * The segments in order, each up to the first record that is not whole. What comes
 * after that is cut off: at the end of the last segment, silently, a record that
 * was being written when the process died; else it is kept in a file *.bad. What is
 * not before @durable is in doubt.
 */
int spool_recover(int dir_fd, const char *path, const struct log *log,
		  struct mark durable, struct segment **ret_segments);

#endif
