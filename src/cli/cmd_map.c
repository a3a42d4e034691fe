/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <stddef.h>

#include "cli/map/map_words.h"

struct options {
	const char *socket, *netns;
	struct map_words words;
	uint32_t interval_ms, duration_ms, rows, verbose;
	int output;
	bool once;
};

static const struct args_option options[] = {
#define SELECT_map OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "map",
	.summary = "Show what NAT of this host translates, or who uses which service",
	.options = options,
	.operands = "[lookup TUPLE | annotate [FILE...] | --services [FILE...]]",
	.operand_list = offsetof(struct options, words.operands),
	.given = offsetof(struct options, words.given),
	.notes =
		"TUPLE is of either direction, before or after translation, or a part of it:\n"
		"'10.0.0.2:40000 > 192.0.2.1:80/tcp', '192.0.2.1:80', '[2001:db8::1]:443/udp', 'icmp'.\n"
		"A running service with 'nat = yes' is asked; it also knows what ended in the last\n"
		"minute. Without it, lookup and --once list the kernel's table of connections.\n"
		"annotate adds to records of other programs in JSON, such as those of nfdump -o json, what\n"
		"netobs knows of their conversations, by --records, or by mappings.\n"
		"--services shows who uses which service: on this host, or by records of many hosts in\n"
		"FILEs, which are lines of JSON. Each conversation counts once.\n",
};

int cmd_map(int argc, char **argv)
{
	struct options wanted = { .interval_ms = 1000, .words.slack_ms = 1000 };
	int result = args_parse(&command, argc, argv, &wanted);

	wanted.words.output = wanted.output;
	if (result == ARGS_RUN)
		result = map_words_run(
			&command, &wanted.words,
			&(struct mapping_request){
				.socket = wanted.socket,
				.netns = wanted.netns,
				.once = wanted.once,
				.is_json = wanted.output == SERVICES_JSON,
				.interval_ms = wanted.interval_ms,
				.duration_ms = wanted.duration_ms,
				.rows = wanted.rows,
				.verbose = wanted.verbose,
			});
	args_list_clear(&wanted.words.operands);
	args_list_clear(&wanted.words.records);
	return result;
}
