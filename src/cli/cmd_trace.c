/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <stddef.h>
#include <stdlib.h>

#include "flows/flows_request.h"
#include "service/trace_watch.h"

enum { FOR_DEFAULT_MS = 10000 };

struct options {
	struct trace_request request;
	struct args_list filter_words;
	int show;
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
		 "room for.\n",
};

int cmd_trace(int argc, char **argv)
{
	struct options wanted = { 0 };
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
	wanted.request.show = (enum trace_show)wanted.show;
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
