// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "cmd.h"

#include <stddef.h>

#include "cmd_screen.h"
#include "service/observe/flows_config.h"

#define FIELD(name) offsetof(struct flows_config, name)

static const struct args_option options[] = {
	{ 'i', "interface", ARGS_LIST, FIELD(interfaces), "IF", NULL,
	  "observe IF: a name, /REGEX/ or netns:NAME/IF; repeatable" },
	{ 'x', "exclude", ARGS_LIST, FIELD(exclude), "IF", NULL,
	  "do not observe IF: a name or /REGEX/; repeatable" },
	{ 0, "sort", ARGS_CHOICE, FIELD(conns_sort),
	  "rate|rtt|retransmits|app|bytes|age", conns_sort_names,
	  "order of rows (default rate)" },
	{ 'n', "rows", ARGS_NUMBER32, FIELD(top), "N", NULL,
	  "print at most N rows where there is no screen (default 20)" },
	{ 'N', "names", ARGS_SWITCH, FIELD(want_names), NULL, NULL,
	  "show names of hosts and ports as soon as they are known" },
	{ 0, "interval", ARGS_SECONDS, FIELD(interval_ms), "SECONDS", NULL,
	  "time between refreshes (default 1)" },
	{ 0, "once", ARGS_SWITCH, FIELD(once), NULL, NULL,
	  "print one table, after one interval, and exit" },
	{ 'o', "output", ARGS_LIST, FIELD(output_specs), "table|json", NULL,
	  "rows as a table, or as JSON lines instead of a screen" },
	{ 'd', "duration", ARGS_SECONDS, FIELD(duration_ms), "SECONDS", NULL,
	  "stop after this time" },
	{ 0, "rtt", ARGS_MODE, FIELD(rtt), "timers|lru", flows_rtt_modes,
	  "how round-trip times are measured (default timers)" },
	{ 0, "max-connections", ARGS_NUMBER32, FIELD(max_connections), "N",
	  NULL, "connections that are measured at a time (default 65536)" },
	{ 0, "process", ARGS_SWITCH, FIELD(process), NULL, NULL,
	  "find the processes at the ends of connections" },
	{ 0, "stats", ARGS_SWITCH, FIELD(stats), NULL, NULL,
	  "at the end, print totals and what the table of connections holds on stderr" },
	{ 'v', "verbose", ARGS_REPEAT, FIELD(verbose), NULL, NULL,
	  "log more to stderr; -vv: still more" },
	{ 0 }
};

static const struct args_command command = {
	.name = "tcp",
	.summary = "Show round-trip times and losses of TCP connections, live",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = FIELD(filter_words),
	.notes = "FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7). It has\n"
		 "to match both directions of a connection.\n"
		 "Keys: r x a b o sort, p freezes, h explains these and others, q quits.\n"
		 "Without a terminal, a table is printed at the end of each interval.\n"
		 "SECONDS may have a fraction or a unit.\n",
};

static void prepare(struct flows_config *config)
{
	if (config->conns_sort < 0)
		config->conns_sort = CONNS_BY_RATE;
	if (!config->rtt)
		config->rtt = NETOBS_RTT_RING;
	config->is_tcp = true;
}

int cmd_tcp(int argc, char **argv)
{
	return cmd_screen(&command, prepare, argc, argv);
}
