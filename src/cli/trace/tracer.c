// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "tracer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Inode of the initial PID namespace: include/linux/proc_ns.h of the kernel. */
#define INITIAL_PIDS "pid:[4026531836]"

/* PIDs of other namespaces than this one cannot be looked up. */
static bool is_no_process(uint32_t pid)
{
	char path[32], namespace[32] = "";

	snprintf(path, sizeof(path), "/proc/%u", pid);
	return readlink("/proc/self/ns/pid", namespace, sizeof(namespace) - 1) >
		       0 &&
	       !strcmp(namespace, INITIAL_PIDS) && access(path, F_OK) < 0 &&
	       errno == ENOENT;
}

bool tracer_check_pid(const struct args_command *command, uint32_t pid)
{
	if (!pid || !is_no_process(pid))
		return true;
	args_complain(command, "--pid %u: there is no such process", pid);
	return false;
}

void tracer_report_left_out(const char *verb, const struct netobs *trace,
			    bool wants_turns)
{
	struct netobs_trace_stats stats = { .sz = sizeof(stats) };

	netobs_trace_stats_get(trace, &stats);
	if (stats.refused_connections)
		fprintf(stderr,
			"netobsctl %s: %" PRIu64
			" connections were not traced for want of room (--max-connections)\n",
			verb, stats.refused_connections);
	if (stats.cut_by_connection || stats.cut_by_rate || stats.lost_events)
		fprintf(stderr,
			"netobsctl %s: events that are missing: %" PRIu64
			" beyond --max-events, %" PRIu64
			" beyond --max-rate, %" PRIu64
			" without room in the ring or in an interrupt\n",
			verb, stats.cut_by_connection, stats.cut_by_rate,
			stats.lost_events);
	if (stats.unhooked_namespaces)
		fprintf(stderr,
			"netobsctl %s: netfilter's hooks were not traced in %" PRIu64
			" network namespaces\n",
			verb, stats.unhooked_namespaces);
	if (stats.thinned_turns && wants_turns)
		fprintf(stderr,
			"netobsctl %s: %" PRIu64
			" turns were left out, beyond 5 records in 4 seconds of a connection\n",
			verb, stats.thinned_turns);
	if (stats.cut_journeys)
		fprintf(stderr,
			"netobsctl %s: %" PRIu64
			" journeys were ended early: too many bytes were on their way\n",
			verb, stats.cut_journeys);
}
