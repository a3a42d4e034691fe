/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Processes whose connections are chosen: by their number, their command, or the container that
 * their control group is in. Data from /proc is kept for a second.
 */
#ifndef NETOBS_TRACE_TRACE_PROCESS_H
#define NETOBS_TRACE_TRACE_PROCESS_H

#include "base/log.h"
#include "who/container_facts.h"

#include <netobs/trace.h>
#include <stdbool.h>
#include <stdint.h>

enum { TRACE_PROCESSES_KNOWN = 256 };

/* Data of a process that was read from /proc. */
struct trace_known_process {
	uint32_t pid; /* 0: none */
	bool is_chosen;
	int64_t until_ns; /* CLOCK_BOOTTIME */
};

/* A process must match all members that are set; 0 and "": not set. */
struct trace_process {
	uint32_t pid;
	char command[16];
	char container[sizeof(((struct cgroup_names *)NULL)->container_id)];
	struct trace_known_process known[TRACE_PROCESSES_KNOWN]; /* by the pid */
};

/** @return 0; -EINVAL: an option is wrong, which is logged */
int trace_process_read(struct trace_process *process,
		       const struct netobs_trace_opts *opts,
		       const struct log *log);

/** @return whether connections are chosen by process; else those of all processes are */
bool trace_process_is_given(const struct trace_process *process);

/**
 * @param pid      as the initial namespace counts
 * @param command  of the thread; it may fill the array
 * @return whether the process is chosen
 */
bool trace_process_is(struct trace_process *process, uint32_t pid,
		      const char command[16]);

#endif
