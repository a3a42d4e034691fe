/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The verbs that show one thing on a screen, or as lines: top and tcp. */
#include "cmd.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/flows/flows_request.h"

#define FIELD(name) offsetof(struct flows_request, name)

enum { DEFAULT_INTERVAL_MS = 1000, DEFAULT_ROWS = 20 };

static const struct args_option top_options[] = {
#define SELECT_top OPTION_SELECTED
#define OPTIONS_STRUCT struct flows_request
#include "service/options/option_rows.h"
#undef SELECT_top
};

static const struct args_option tcp_options[] = {
#define SELECT_tcp OPTION_SELECTED
#define OPTIONS_STRUCT struct flows_request
#include "service/options/option_rows.h"
#undef SELECT_tcp
};

static const struct args_command top_command = {
	.name = "top",
	.summary = "Show who causes the traffic of this host, live in the terminal",
	.options = top_options,
	.operands = "[FILTER]",
	.operand_list = FIELD(filter_words),
	.given = FIELD(given),
	.notes = "FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7).\n"
		 "Keys: 1 to 9 choose a table, b k f s r x d n sort, t shows sums since the start,\n"
		 "/ searches, p pauses, h explains these and others, q quits.\n"
		 "Without a terminal, a table is printed at the end of each interval.\n"
		 "KEY is one of netobsctl flows. SECONDS may have a fraction or a unit.\n",
};

static const struct args_command tcp_command = {
	.name = "tcp",
	.summary = "Show round-trip times and retransmissions of TCP connections, live",
	.options = tcp_options,
	.operands = "[FILTER]",
	.operand_list = FIELD(filter_words),
	.given = FIELD(given),
	.notes = "FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7). It has\n"
		 "to match both directions of a connection.\n"
		 "Keys: r x a b o sort, p pauses, h explains these and others, q quits.\n"
		 "Without a terminal, a table is printed at the end of each interval.\n"
		 "SECONDS may have a fraction or a unit.\n",
};

/* The one output is table, which is the default, or json. */
static enum args_result choose_output(struct flows_request *request)
{
	static const char *const table = "table";
	const struct args_list *specs = &request->output_specs;
	const char *spec = specs->n ? specs->items[0] : table;

	if (specs->n > 1 || (strcmp(spec, table) && strcmp(spec, "json"))) {
		args_complain(
			request->command,
			"-o: it is either table or json; netobsctl flows has others");
		return ARGS_WRONG;
	}
	if (specs->n)
		return ARGS_RUN;
	request->output_specs.items = calloc(2, sizeof(*specs->items));
	if (!request->output_specs.items)
		args_out_of_memory(request->command);
	request->output_specs.items[0] = table;
	request->output_specs.n = 1;
	return ARGS_RUN;
}

/* For --once: make the interval longer than the run, so that there is only one. */
static void observe_once(struct flows_request *request)
{
	if (!request->once || request->files.n)
		return;
	request->duration_ms = request->config.opts.interval_ms;
	request->config.opts.interval_ms = 2 * request->duration_ms;
}

static enum args_result parse_screen(struct flows_request *request,
				     void (*prepare)(struct flows_request *request),
				     int argc, char **argv)
{
	enum args_result result =
		args_parse(request->command, argc, argv, request);

	if (result != ARGS_RUN)
		return result;
	if (request->once && request->duration_ms) {
		args_complain(
			request->command,
			"--once: cannot be combined with -d; use --interval");
		return ARGS_WRONG;
	}
	if (!request->config.opts.interval_ms)
		request->config.opts.interval_ms = DEFAULT_INTERVAL_MS;
	request->has_screen = !request->once;
	prepare(request);
	result = choose_output(request);
	if (result == ARGS_RUN)
		result = flows_request_finish(request);
	if (result == ARGS_RUN && !request->view.top)
		request->view.top = DEFAULT_ROWS;
	return result;
}

/* @prepare: sets what the verb implies, before the options are combined */
static int run_screen(const struct args_command *command,
		      void (*prepare)(struct flows_request *request), int argc,
		      char **argv)
{
	struct flows_request request = { .command = command };
	enum args_result result = parse_screen(&request, prepare, argc, argv);
	int status = result;

	if (result == ARGS_RUN) {
		observe_once(&request);
		status = flows_session(&request);
	}
	flows_request_clear(&request);
	return status;
}

static void prepare_top(struct flows_request *request)
{
	if (!request->by)
		request->by = flows_default_by(request);
	else if (!strcmp(request->by, "flow"))
		request->by = "tuple";
	request->is_top = true;
}

int cmd_top(int argc, char **argv)
{
	return run_screen(&top_command, prepare_top, argc, argv);
}

static void prepare_tcp(struct flows_request *request)
{
	request->config.rtt = true;
	request->is_tcp = true;
}

int cmd_tcp(int argc, char **argv)
{
	return run_screen(&tcp_command, prepare_tcp, argc, argv);
}
