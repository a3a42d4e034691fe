/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Processes at the ends of conversations, as records name them: each of an agent is there once. */
#ifndef NETOBS_CLI_ANNOTATE_END_PROCESS_H
#define NETOBS_CLI_ANNOTATE_END_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json_reader.h"

struct end_process {
	struct end_process *next;
	uint64_t pid;
	uint64_t agent; /* hash of the agent that reported it; 0: unknown */
	char *members[2]; /* JSON members, each after a comma: as source, as destination */
};

enum { END_PROCESS_BUCKETS = 4096 };

/* All zero: there are none. */
struct end_processes {
	struct end_process *buckets[END_PROCESS_BUCKETS];
};

/**
 * Find the process that a record names, or add it.
 *
 * @param agent        as in struct end_process
 * @param prefix       before the names of its members in @record: "Src", "Dst", ""
 * @param ret_process  as long as @processes; untouched if the record names none
 * @return 0; -ENOMEM
 */
int end_processes_find(struct end_processes *processes,
		       struct json_value record, const char *prefix,
		       uint64_t agent, const struct end_process **ret_process);

/**
 * Numbers of processes are those of a host. Of one host, a number may name several programs, which the
 * process has executed one after the other.
 *
 * @return whether both are one process
 */
bool end_process_is_same(const struct end_process *a,
			 const struct end_process *b);

void end_processes_done(struct end_processes *processes);

#endif
