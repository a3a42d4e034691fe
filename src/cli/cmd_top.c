/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <stddef.h>
#include <string.h>

#include "cmd_screen.h"
#include "cli/flows/flows_request.h"

#define FIELD(name) offsetof(struct flows_request, name)

static const struct args_option options[] = {
#define SELECT_top OPTION_SELECTED
#define OPTIONS_STRUCT struct flows_request
#define OPTIONS_SHARED(member) config.member
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "top",
	.summary = "Show who causes the traffic of this host, live in the terminal",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = FIELD(filter_words),
	.given = FIELD(given),
	.notes =
		"FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7).\n"
		"Keys: 1 to 9 choose a table, b k f s r x n sort, t shows sums since the start,\n"
		"/ searches, p freezes, h explains these and others, q quits.\n"
		"Without a terminal, a table is printed at the end of each interval.\n"
		"KEY is one of netobsctl flows. SECONDS may have a fraction or a unit.\n",
};

static void prepare_top(struct flows_request *request)
{
	if (!request->by)
		request->by = "client,service";
	else if (!strcmp(request->by, "flow"))
		request->by = "tuple";
	request->is_top = true;
}

int cmd_top(int argc, char **argv)
{
	return cmd_screen(&command, prepare_top, argc, argv);
}
