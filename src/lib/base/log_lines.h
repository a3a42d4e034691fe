/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Lines that a thread logs, for the caller's log: its callback runs on the caller's thread. */
#ifndef NETOBS_BASE_LOG_LINES_H
#define NETOBS_BASE_LOG_LINES_H

#include "log.h"

struct log_line;

/* May be zeroed. */
struct log_lines {
	struct log_line *first, **end;
};

/* @return a log that keeps its lines in @lines */
struct log log_lines_log(struct log_lines *lines);

/* Write all lines to @log, in their order, and forget them. */
void log_lines_pass_on(struct log_lines *lines, const struct log *log);

/* Forget all lines. */
void log_lines_done(struct log_lines *lines);

#endif
