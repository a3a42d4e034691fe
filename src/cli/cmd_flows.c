/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The verbs that observe flows or connections: flows, top, tcp and alerts. */
#include "cmd.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/flows/flows_request.h"
#include "service/control/control.h"

enum { DEFAULT_INTERVAL_MS = 1000, DEFAULT_ROWS = 20 };

static const struct args_option flows_options[] = {
#define SELECT_flows OPTION_SELECTED
#define OPTIONS_STRUCT struct flows_request
#include "service/options/option_rows.h"
#undef SELECT_flows
};

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

static const struct args_option alerts_options[] = {
#define SELECT_alerts OPTION_SELECTED
#define OPTIONS_STRUCT struct flows_request
#include "service/options/option_rows.h"
#undef SELECT_alerts
};

#define FILTER_OPERAND                                                \
	.operands = "[FILTER]",                                       \
	.operand_list = offsetof(struct flows_request, filter_words), \
	.given = offsetof(struct flows_request, given)

static const struct args_command flows_command = {
	.name = "flows",
	.summary = "Show the flows that cross this host's interfaces",
	.options = flows_options,
	FILTER_OPERAND,
	.notes =
		"FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7).\n"
		"Without -i, all interfaces are observed, including new ones.\n"
		"KEY is src, dst, client, service, host, tuple, conversation, pair, port, proto,\n"
		"interface, direction, vlan, tunnel, process, container, pod, unit, slice,\n"
		"machine, network, src_network or dst_network. The live table\n"
		"groups by client,service without --by.\n"
		"Without -o, the output is table on a terminal, json otherwise.\n"
		"SECONDS may have a fraction, such as 0.5, or a unit, such as 90s or 5m.\n",
};

static const struct args_command top_command = {
	.name = "top",
	.summary = "Show who causes the traffic of this host, live in the terminal",
	.options = top_options,
	FILTER_OPERAND,
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
	FILTER_OPERAND,
	.notes = "FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7). It has\n"
		 "to match both directions of a connection.\n"
		 "Keys: r x a b o sort, p pauses, h explains these and others, q quits.\n"
		 "Without a terminal, a table is printed at the end of each interval.\n"
		 "SECONDS may have a fraction or a unit.\n",
};

static const struct args_command alerts_command = {
	.name = "alerts",
	.summary = "Report TCP connections and flows that break rules, at once",
	.options = alerts_options,
	FILTER_OPERAND,
	.notes = "RULE is METRIC > VALUE [for N of M] [hold TIME] [limit N/s] [where EXPRESSION], with a\n"
		 "METRIC of rtt, app_latency, retransmits, rate and drops: 'rtt > 50ms for 3 of 5',\n"
		 "'app_latency > 3 * baseline', 'retransmits > 1% where port 443', 'rate > 1Gbit',\n"
		 "'drops > 0.1%' or 'drops > 10' of flows, in an interval, with --drops.\n"
		 "FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7). It has\n"
		 "to match both directions of a connection.\n"
		 "SECONDS may have a fraction or a unit.\n",
};

/* Set what the verb implies and finish the request, with @prepare. */
static int run_verb(const struct args_command *command,
		    enum args_result (*prepare)(struct flows_request *request),
		    int argc, char **argv)
{
	struct flows_request request = { .command = command };
	enum args_result result = args_parse(command, argc, argv, &request);
	int status;

	if (result == ARGS_RUN)
		result = prepare(&request);
	status = result;
	if (result == ARGS_RUN)
		status = request.live ? flows_live(&request) :
					flows_session(&request);
	flows_request_clear(&request);
	return status;
}

/* ---- Flows ------------------------------------------------------------------------------ */

static enum args_result prepare_flows(struct flows_request *request)
{
	request->has_screen = !request->files.n && !request->live;
	return flows_request_finish(request);
}

int cmd_flows(int argc, char **argv)
{
	return run_verb(&flows_command, prepare_flows, argc, argv);
}

/* ---- Top and tcp: a screen, or lines ---------------------------------------------------- */

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

static enum args_result prepare_screen(struct flows_request *request)
{
	enum args_result result;

	if (request->once && request->duration_ms) {
		args_complain(
			request->command,
			"--once: cannot be combined with -d; use --interval");
		return ARGS_WRONG;
	}
	if (!request->config.opts.interval_ms)
		request->config.opts.interval_ms = DEFAULT_INTERVAL_MS;
	request->has_screen = !request->once;
	result = choose_output(request);
	if (result == ARGS_RUN)
		result = flows_request_finish(request);
	if (result == ARGS_RUN && !request->view.top)
		request->view.top = DEFAULT_ROWS;
	observe_once(request);
	return result;
}

static enum args_result prepare_top(struct flows_request *request)
{
	if (!request->by)
		request->by = flows_default_by(request);
	else if (!strcmp(request->by, "flow"))
		request->by = "tuple";
	request->is_top = true;
	return prepare_screen(request);
}

int cmd_top(int argc, char **argv)
{
	return run_verb(&top_command, prepare_top, argc, argv);
}

static enum args_result prepare_tcp(struct flows_request *request)
{
	request->config.rtt = true;
	request->is_tcp = true;
	return prepare_screen(request);
}

int cmd_tcp(int argc, char **argv)
{
	return run_verb(&tcp_command, prepare_tcp, argc, argv);
}

/* ---- Alerts ----------------------------------------------------------------------------- */

static enum args_result prepare_alerts(struct flows_request *request)
{
	enum args_result result;

	request->config.rtt = true;
	request->is_alerts = true;
	if (!request->alert_specs.n) {
		args_complain(
			request->command,
			"--rule: at least one is needed, such as 'rtt > 50ms'");
		return ARGS_WRONG;
	}
	result = flows_take_rules(request->command, &request->alert_specs,
				  request->config.drops, &request->config.alerts);
	return result == ARGS_RUN ? flows_request_finish(request) : result;
}

int cmd_alerts(int argc, char **argv)
{
	return run_verb(&alerts_command, prepare_alerts, argc, argv);
}
