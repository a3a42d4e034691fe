/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A file of lines that is rotated by size and time, perhaps compressed. A file turns
 * only between lines, and none is empty; what has to wait for the disk, a worker
 * does. roll_names.h has the names.
 */
#ifndef NETOBS_LIB_SINK_ROLL_H
#define NETOBS_LIB_SINK_ROLL_H

#include "line_state.h"
#include "module.h"

#include <sys/types.h>

struct roll_options {
	uint64_t max_bytes;   /* 0: any number */
	uint64_t interval_ms; /* 0: any time */
	uint32_t keep;	      /* files; 0: all */
	const char *compress; /* "gzip", "zstd" or NULL */
	int level;	      /* 0: the usual */
	uint64_t sync_ms;     /* 0: when a file is complete */
};

/* Whether @spec wants it; what is wrong with its options is logged. */
bool roll_parse(struct spec *spec, struct roll_options *ret_options);

struct roll;

/* Errors: as open(2); -EBUSY: another process has it. They are logged. */
int roll_open(const char *path, const struct roll_options *options,
	      struct sink_host *host, struct roll **ret_roll);

/* The file that is being written gets its final name. NULL is fine. */
void roll_close(struct roll *roll);

/* As those of line_out.h. */
enum line_out_state roll_prepare(struct roll *roll);
ssize_t roll_write(struct roll *roll, const char *lines, size_t len);
void roll_written(struct roll *roll, struct mark end);
void roll_rest(struct roll *roll);
void roll_counters(const struct roll *roll, sink_counter_fn *take, void *ctx);

#endif
