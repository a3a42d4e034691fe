/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <stddef.h>

#include "cli/flows/flows_request.h"

#define FIELD(name) offsetof(struct flows_request, name)

static const struct args_option options[] = {
#define SELECT_alerts OPTION_SELECTED
#define OPTIONS_STRUCT struct flows_request
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "alerts",
	.summary = "Report TCP connections and flows that break rules, at once",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = FIELD(filter_words),
	.given = FIELD(given),
	.notes = "RULE is METRIC > VALUE [for N of M] [hold TIME] [limit N/s] [where EXPRESSION], with a\n"
		 "METRIC of rtt, app_latency, retransmits, rate and drops: 'rtt > 50ms for 3 of 5',\n"
		 "'app_latency > 3 * baseline', 'retransmits > 1% where port 443', 'rate > 1Gbit',\n"
		 "'drops > 0.1%' or 'drops > 10' of flows, in an interval, with --drops.\n"
		 "FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7). It has\n"
		 "to match both directions of a connection.\n"
		 "SECONDS may have a fraction or a unit.\n",
};

static enum args_result parse_alerts(struct flows_request *request, int argc,
				     char **argv)
{
	enum args_result result = args_parse(&command, argc, argv, request);

	if (result != ARGS_RUN)
		return result;
	request->config.rtt = true;
	request->is_alerts = true;
	if (!request->alert_specs.n) {
		args_complain(
			&command,
			"--rule: at least one is needed, such as 'rtt > 50ms'");
		return ARGS_WRONG;
	}
	result = flows_take_rules(&command, &request->alert_specs,
				  request->config.drops, &request->config.alerts);
	return result == ARGS_RUN ? flows_request_finish(request) : result;
}

int cmd_alerts(int argc, char **argv)
{
	struct flows_request request = { .command = &command };
	enum args_result result = parse_alerts(&request, argc, argv);
	int status = result == ARGS_RUN ? flows_session(&request) : (int)result;

	flows_request_clear(&request);
	return status;
}
