/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "service/observe/flows_config.h"

#define FIELD(name) offsetof(struct flows_config, name)

static const struct args_option options[] = {
	{ 0, "rule", ARGS_LIST, FIELD(alert_specs), "[NAME=]RULE", NULL,
	  "report connections that break RULE; repeatable" },
	{ 'i', "interface", ARGS_LIST, FIELD(interfaces), "IF", NULL,
	  "observe IF: a name, /REGEX/ or netns:NAME/IF; repeatable" },
	{ 'x', "exclude", ARGS_LIST, FIELD(exclude), "IF", NULL,
	  "do not observe IF: a name or /REGEX/; repeatable" },
	{ 'o', "output", ARGS_LIST, FIELD(output_specs), "OUTPUT", NULL,
	  "table, json, json:PATH, ipfix:..., kafka://..., grpc://..., http://...; repeatable "
	  "(default table on a terminal, else json)" },
	{ 'd', "duration", ARGS_SECONDS, FIELD(duration_ms), "SECONDS", NULL,
	  "stop after this time" },
	{ 'n', "count", ARGS_NUMBER, FIELD(count), "COUNT", NULL,
	  "stop after so many alerts" },
	{ 'r', "read", ARGS_LIST, FIELD(files), "FILE", NULL,
	  "read packets from a pcap or pcapng file (- for stdin); repeatable" },
	{ 0, "rtt", ARGS_MODE, FIELD(rtt), "timers|lru", flows_rtt_modes,
	  "how round-trip times are measured (default timers)" },
	{ 0, "max-connections", ARGS_NUMBER32, FIELD(max_connections), "N",
	  NULL, "connections that are measured at a time (default 65536)" },
	{ 0, "process", ARGS_SWITCH, FIELD(process), NULL, NULL,
	  "find the process of the local end" },
	{ 0, "stats", ARGS_SWITCH, FIELD(stats), NULL, NULL,
	  "at the end, print what each rule has done as JSON on stderr" },
	{ 'v', "verbose", ARGS_REPEAT, FIELD(verbose), NULL, NULL,
	  "log more to stderr; -vv: still more" },
	{ 0 }
};

static const struct args_command command = {
	.name = "alerts",
	.summary = "Report TCP connections that break rules, at once",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = FIELD(filter_words),
	.notes = "RULE is METRIC > VALUE [for N of M] [hold TIME] [limit N/s] [where EXPRESSION], with a\n"
		 "METRIC of rtt, app_latency, retransmits and rate: 'rtt > 50ms for 3 of 5',\n"
		 "'app_latency > 3 * baseline', 'retransmits > 1% where port 443', 'rate > 1Gbit'.\n"
		 "FILTER selects packets, in the kernel, as tcpdump does: see pcap-filter(7). It has\n"
		 "to match both directions of a connection.\n"
		 "SECONDS may have a fraction or a unit.\n",
};

static enum args_result take_rules(struct flows_config *config)
{
	const struct args_list *specs = &config->alert_specs;

	if (!specs->n) {
		args_complain(
			&command,
			"--rule: at least one is needed, such as 'rtt > 50ms'");
		return ARGS_WRONG;
	}
	for (size_t i = 0; i < specs->n; i++) {
		int r = alert_rules_add(&config->alerts, NULL, specs->items[i]);
		const struct netobs_alert_rule *rule;
		char why[640];

		if (r == -ENOMEM)
			args_out_of_memory(&command);
		if (r < 0) {
			args_complain(&command,
				      "--rule: there are more than 128");
			return ARGS_WRONG;
		}
		rule = &config->alerts.list[i];
		r = netobs_alert_rule_check(rule->rule, why, sizeof(why));
		if (r == 0)
			continue;
		if (r == -ENOMEM)
			args_out_of_memory(&command);
		args_complain(&command, "--rule '%s': %s", rule->rule, why);
		return ARGS_WRONG;
	}
	return ARGS_RUN;
}

static enum args_result parse(struct flows_config *config, int argc, char **argv)
{
	enum args_result result = args_parse(&command, argc, argv, config);

	if (result != ARGS_RUN)
		return result;
	if (!config->rtt)
		config->rtt = NETOBS_RTT_RING;
	config->is_alerts = true;
	result = take_rules(config);
	return result == ARGS_RUN ? flows_config_finish(config) : result;
}

int cmd_alerts(int argc, char **argv)
{
	struct flows_config config;
	enum args_result result;
	int status;

	flows_config_init(&config, &command);
	result = parse(&config, argc, argv);
	status = result == ARGS_WRONG ? EXIT_USAGE : EXIT_FINE;
	if (result == ARGS_RUN)
		status = flows_session(&config);
	flows_config_clear(&config);
	return status;
}
