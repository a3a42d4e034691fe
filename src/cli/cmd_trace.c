/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalogue/fields.h"
#include "flows/flows_request.h"
#include "cli/trace/trace_watch.h"

enum { FOR_DEFAULT_MS = 10000, SHOW_DEFAULT = -1 };

/* Inode of the initial PID namespace: include/linux/proc_ns.h of the kernel. */
#define INITIAL_PIDS "pid:[4026531836]"

/* The parts that --show summary names. */
#define LIST_JourneyPart(line) ~, line
#define ENUM_VALUE(type, number, NAME, name, text) \
	FIELD_CHOOSE(LIST_##type("  " name ": " text "\n"), )

struct options {
	struct trace_request request;
	struct args_list filter_words;
	int show;
	uint32_t verbose;
};

static const struct args_option options[] = {
#define SELECT_trace OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "trace",
	.summary = "Show where the bytes of connections spend their time, from send to read",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = offsetof(struct options, filter_words),
	.notes = "FILTER chooses connections of TCP and UDP, and pings, by their addresses and ports, before\n"
		 "or after NAT: see pcap-filter(7). Without it, all are traced that --max-connections has\n"
		 "room for.\n"
		 "The parts of a journey:\n"
#include "catalogue/records.def"
		 "What a server takes for its answers is no part: see APP of netobsctl tcp.\n"
		 "On a terminal, q ends it, and p pauses the summary.\n",
};

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

/* A terminal shows too few journeys as lines at a time. */
static enum trace_show default_show(const struct trace_request *request)
{
	const struct args_list *outputs = &request->outputs;
	const bool is_table =
		!outputs->n ||
		(outputs->n == 1 && !strcmp(outputs->items[0], "table"));

	return is_table && !request->rules.n && isatty(STDOUT_FILENO) ?
		       TRACE_SHOW_SUMMARY :
		       TRACE_SHOW_JOURNEYS;
}

int cmd_trace(int argc, char **argv)
{
	struct options wanted = { .show = SHOW_DEFAULT };
	int result = args_parse(&command, argc, argv, &wanted);
	char *filter = NULL;

	if (result == ARGS_RUN &&
	    flows_join_filter(&command, &wanted.filter_words, &filter) < 0)
		result = EXIT_FAILED;
	if (result == ARGS_RUN && !wanted.request.rules.n &&
	    (wanted.request.for_ms || wanted.request.interfaces.n)) {
		args_complain_alone(&command,
				    wanted.request.for_ms ? "--for" : "-i",
				    "--rule");
		result = EXIT_USAGE;
	}
	wanted.request.filter = filter;
	wanted.request.for_ms = wanted.request.for_ms ?: FOR_DEFAULT_MS;
	wanted.request.verbose = wanted.verbose;
	wanted.request.show = wanted.show == SHOW_DEFAULT ?
				      default_show(&wanted.request) :
				      (enum trace_show)wanted.show;
	if (result == ARGS_RUN && wanted.request.pid &&
	    is_no_process(wanted.request.pid)) {
		args_complain(&command, "--pid %u: there is no such process",
			      wanted.request.pid);
		result = EXIT_FAILED;
	}
	if (result == ARGS_RUN && wanted.show == TRACE_SHOW_EVENTS &&
	    wanted.request.svg) {
		args_complain(&command, "--svg draws journeys, not events");
		result = EXIT_USAGE;
	}
	if (result == ARGS_RUN && wanted.request.rules.n &&
	    (wanted.request.pid || wanted.request.command ||
	     wanted.request.container)) {
		args_complain(
			&command,
			"--pid, --comm and --container cannot be combined with --rule: alerts choose the connections");
		result = EXIT_USAGE;
	}
	if (result == ARGS_RUN && wanted.request.layers.n &&
	    !trace_request_has_events(&wanted.request)) {
		args_complain(
			&command,
			"--layer selects events: --show events or -o pcapng");
		result = EXIT_USAGE;
	}
	if (result == ARGS_RUN &&
	    wanted.request.budget.max_connections > TRACE_CONNECTIONS_MAX) {
		args_complain(&command, "--max-connections: it is more than %d",
			      TRACE_CONNECTIONS_MAX);
		result = EXIT_USAGE;
	}
	if (result == ARGS_RUN)
		result = trace_watch(&wanted.request);
	free(filter);
	args_list_clear(&wanted.filter_words);
	args_list_clear(&wanted.request.layers);
	args_list_clear(&wanted.request.outputs);
	args_list_clear(&wanted.request.rules);
	args_list_clear(&wanted.request.interfaces);
	return result;
}
