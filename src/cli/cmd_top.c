/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <stddef.h>
#include <string.h>

#include "cmd_screen.h"
#include "service/observe/flows_config.h"

#define FIELD(name) offsetof(struct flows_config, name)

static const struct args_option options[] = {
	{ 'i', "interface", ARGS_LIST, FIELD(interfaces), "IF", NULL,
	  "observe IF: a name, /REGEX/ or netns:NAME/IF; repeatable" },
	{ 'x', "exclude", ARGS_LIST, FIELD(exclude), "IF", NULL,
	  "do not observe IF: a name or /REGEX/; repeatable" },
	{ 0, "direction", ARGS_CHOICE, FIELD(direction), "both|ingress|egress",
	  flows_directions,
	  "direction of packets, as the interface sees it (default both)" },
	{ 0, "by", ARGS_STRING, FIELD(by), "KEY[,KEY]...", NULL,
	  "group flows by these keys (default client,service)" },
	{ 0, "sort", ARGS_STRING, FIELD(sort), "COLUMN", NULL,
	  "order of rows: bytes, packets, flows, sent, rtt, retransmits or a KEY (default bytes)" },
	{ 'n', "rows", ARGS_NUMBER32, FIELD(top), "N", NULL,
	  "print at most N rows where there is no screen (default 20)" },
	{ 'N', "names", ARGS_SWITCH, FIELD(want_names), NULL, NULL,
	  "show names of hosts and ports as soon as they are known" },
	{ 0, "interval", ARGS_SECONDS, FIELD(interval_ms), "SECONDS", NULL,
	  "time between refreshes (default 1)" },
	{ 0, "once", ARGS_SWITCH, FIELD(once), NULL, NULL,
	  "print one table, of one interval, and exit" },
	{ 'o', "output", ARGS_LIST, FIELD(output_specs), "table|json", NULL,
	  "rows as a table, or as JSON lines instead of a screen" },
	{ 'd', "duration", ARGS_SECONDS, FIELD(duration_ms), "SECONDS", NULL,
	  "stop after this time" },
	{ 0, "sampling", ARGS_STRING, FIELD(sampling), "N|flow:N", NULL,
	  "count one packet of N, at random, or the packets of one flow of N" },
	{ 0, "rtt", ARGS_MODE, FIELD(rtt), "timers|lru", flows_rtt_modes,
	  "measure and show round-trip times and retransmissions of TCP" },
	{ 0, "process", ARGS_SWITCH, FIELD(process), NULL, NULL,
	  "find the processes that flows come from and go to" },
	{ 0, "max-flows", ARGS_NUMBER32, FIELD(max_flows), "N", NULL,
	  "upper bound of flows in an interval (default 1048576)" },
	{ 0, "max-memory", ARGS_BYTES, FIELD(max_memory), "BYTES", NULL,
	  "upper bound of memory for new flows, such as 64M" },
	{ 'r', "read", ARGS_LIST, FIELD(files), "FILE", NULL,
	  "read packets from a pcap or pcapng file (- for stdin); repeatable" },
	{ 0, "stats", ARGS_SWITCH, FIELD(stats), NULL, NULL,
	  "at the end, print statistics of all packets on stderr" },
	{ 'v', "verbose", ARGS_REPEAT, FIELD(verbose), NULL, NULL,
	  "log more to stderr; -vv: still more" },
	{ 0 }
};

static const struct args_command command = {
	.name = "top",
	.summary = "Show who causes the traffic of this host, live in the terminal",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = FIELD(filter_words),
	.notes =
		"FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7).\n"
		"Keys: 1 to 9 choose a table, b k f s r x n sort, t shows sums since the start,\n"
		"/ searches, p freezes, h explains these and others, q quits.\n"
		"Without a terminal, a table is printed at the end of each interval.\n"
		"KEY is one of netobsctl flows. SECONDS may have a fraction or a unit.\n",
};

static void prepare(struct flows_config *config)
{
	if (!config->by)
		config->by = "client,service";
	else if (!strcmp(config->by, "flow"))
		config->by = "tuple";
	config->is_top = true;
}

int cmd_top(int argc, char **argv)
{
	return cmd_screen(&command, prepare, argc, argv);
}
