// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "cmd.h"

#include <stddef.h>

#include "cmd_screen.h"
#include "cli/flows/flows_request.h"

#define FIELD(name) offsetof(struct flows_request, name)

static const struct args_option options[] = {
#define SELECT_tcp OPTION_SELECTED
#define OPTIONS_STRUCT struct flows_request
#define OPTIONS_SHARED(member) config.member
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "tcp",
	.summary = "Show round-trip times and losses of TCP connections, live",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = FIELD(filter_words),
	.given = FIELD(given),
	.notes = "FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7). It has\n"
		 "to match both directions of a connection.\n"
		 "Keys: r x a b o sort, p freezes, h explains these and others, q quits.\n"
		 "Without a terminal, a table is printed at the end of each interval.\n"
		 "SECONDS may have a fraction or a unit.\n",
};

static void prepare_tcp(struct flows_request *request)
{
	if (!request->config.rtt)
		request->config.rtt = NETOBS_RTT_RING;
	request->is_tcp = true;
}

int cmd_tcp(int argc, char **argv)
{
	return cmd_screen(&command, prepare_tcp, argc, argv);
}
