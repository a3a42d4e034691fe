/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the library tells: log lines, records and intervals, kept for a look. */
#ifndef HARNESS_LIB_WITNESS_H
#define HARNESS_LIB_WITNESS_H

#include "base/log.h"

#include <netobs/netobs.h>
#include <stdbool.h>

enum { WITNESS_POINTS = 24 };

/* A record outlives its callback here; its points are copies as well. */
struct witness_flow {
	struct netobs_flow flow;
	struct netobs_point points[WITNESS_POINTS];
	char names[WITNESS_POINTS][16];
};

struct witness {
	char log[1 << 15];
	size_t log_len;
	uint32_t n_lines;
	uint32_t errors; /* lines of that level */
	uint32_t warnings;

	struct witness_flow *flows;
	uint32_t n_flows;
	uint32_t capacity;
	uint64_t packets; /* of all of them */
	uint64_t bytes;
	uint32_t n_intervals;
};

/* The callbacks of netobs_opts; @user is the witness. */
void witness_on_flow(const struct netobs_record *record, void *user);
void witness_on_interval(void *user);
void witness_on_log(int level, const char *message, void *user);

/* All three, and the witness, into @opts. */
void witness_listen(struct witness *witness, struct netobs_opts *opts);

struct log witness_log(struct witness *witness);

/* Whether a line of the log contains @words. */
bool witness_read(const struct witness *witness, const char *words);

/* The last line of the log, with its end; "": there is none. */
const char *witness_last(const struct witness *witness);

/* Forget all records, and free them. */
void witness_clear(struct witness *witness);

/* Sum of the packets of records with destination port @port. */
uint64_t witness_packets_to(const struct witness *witness, uint16_t port);

#endif
