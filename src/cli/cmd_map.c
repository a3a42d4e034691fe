/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "cli/map/mapping_watch.h"
#include "cli/services/services_view.h"
#include "service/options/args.h"

enum { TUPLE_MAX = 256 };

static const struct args_option options[] = {
#define SELECT_map OPTION_SELECTED
#define OPTIONS_STRUCT struct map_options
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "map",
	.summary = "Show what NAT of this host translates, or who uses which service",
	.options = options,
	.operands = "[lookup TUPLE | annotate [FILE...] | --services [FILE...]]",
	.operand_list = offsetof(struct map_options, operands),
	.given = offsetof(struct map_options, given),
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

/* The variant of the command. */
enum action { LIVE, ONCE, LOOKUP, ANNOTATE, SERVICES, SERVICES_OF_FILES };

static const char *const names[] = {
	[LIVE] = "the live table", [ONCE] = "--once",
	[LOOKUP] = "lookup",	   [ANNOTATE] = "annotate",
	[SERVICES] = "--services", [SERVICES_OF_FILES] = "--services of files",
};

/* The variant that an option selects. Any other option changes all variants. */
static const struct {
	const char *option;
	unsigned int actions;
} uses[] = {
	{ "output", ~(1U << ANNOTATE) },
	{ "rows", ~(1U << ANNOTATE) },
	{ "interval", 1 << LIVE | 1 << SERVICES },
	{ "duration", 1 << LIVE | 1 << SERVICES },
	{ "once", 1 << ONCE | 1 << SERVICES },
	{ "records", 1 << ANNOTATE },
	{ "services", 1 << SERVICES | 1 << SERVICES_OF_FILES },
	{ "svg", 1 << SERVICES | 1 << SERVICES_OF_FILES },
	{ "container-names", 1 << SERVICES },
	{ "container-root", 1 << SERVICES },
	{ "netns", ~(1U << SERVICES | 1U << SERVICES_OF_FILES) },
	{ "socket", ~(1U << SERVICES | 1U << SERVICES_OF_FILES) },
};

static bool changes(const char *option, enum action action)
{
	for (size_t i = 0; i < ARRAY_SIZE(uses); i++)
		if (!strcmp(uses[i].option, option))
			return uses[i].actions & 1U << action;
	return true;
}

/* @return false: one was given that changes nothing, which was printed */
static bool check_options(const struct map_options *wanted, enum action action)
{
	uint64_t given = wanted->given;

	for (const struct args_option *option = command.options; option->name;
	     option++, given >>= 1) {
		if (!(given & 1) || changes(option->name, action))
			continue;
		args_complain(&command, "%s: it has no effect with %s",
			      args_label(option->letter, option->name).text,
			      names[action]);
		return false;
	}
	if (wanted->container_root && !wanted->container_names) {
		args_complain_alone(&command, "--container-root",
				    "--container-names");
		return false;
	}
	if (!wanted->socket || !wanted->netns)
		return true;
	args_complain(
		&command,
		"--netns: it lists the kernel's table, and cannot be combined with --socket");
	return false;
}

static uint32_t count_stdin(const struct args_list *paths)
{
	uint32_t n = 0;

	for (size_t i = 0; i < paths->n; i++)
		n += !strcmp(paths->items[i], "-");
	return n;
}

/* @return false: standard input is several files, which was printed */
static bool check_stdin(const struct map_options *wanted, enum action action)
{
	const bool has_files = action == ANNOTATE || action == SERVICES_OF_FILES;
	const uint32_t n = count_stdin(&wanted->records) +
			   count_stdin(&wanted->operands) +
			   (action == ANNOTATE && wanted->operands.n == 1);

	if (!has_files || n <= 1)
		return true;
	args_complain(&command, "-: standard input can be read only once");
	return false;
}

/* All words behind "lookup" are the tuple. */
static int look_up(struct map_options *wanted)
{
	const struct args_list *operands = &wanted->operands;
	char tuple[TUPLE_MAX + 1] = "";

	for (size_t i = 1; i < operands->n; i++)
		text_append(tuple, sizeof(tuple), "%s%s", *tuple ? " " : "",
			    operands->items[i]);
	if (strlen(tuple) == sizeof(tuple) - 1) {
		args_complain(&command, "lookup: a tuple has less than %d bytes",
			      TUPLE_MAX);
		return EXIT_USAGE;
	}
	wanted->tuple = tuple;
	wanted->once = true;
	return mapping_watch(wanted);
}

/* @return false: the words are wrong, which was printed */
static bool find_action(const struct map_options *wanted, enum action *ret_action)
{
	const struct args_list *operands = &wanted->operands;
	const char *word = operands->n ? operands->items[0] : "";

	*ret_action = wanted->once ? ONCE : LIVE;
	if (wanted->is_of_services) {
		*ret_action = operands->n ? SERVICES_OF_FILES : SERVICES;
	} else if (wanted->output == SERVICES_DOT) {
		args_complain(&command, "-o dot: it is a format of --services");
		return false;
	} else if (!strcmp(word, "annotate")) {
		*ret_action = ANNOTATE;
	} else if (operands->n > 1 && !strcmp(word, "lookup")) {
		*ret_action = LOOKUP;
	} else if (operands->n) {
		args_complain(&command,
			      "'%s': it is 'lookup TUPLE' or 'annotate [FILE...]'; "
			      "only --services takes files without a word",
			      word);
		return false;
	}
	return true;
}

static int run_map(struct map_options *wanted)
{
	enum action action;

	if (!find_action(wanted, &action) || !check_options(wanted, action) ||
	    !check_stdin(wanted, action))
		return EXIT_USAGE;
	switch (action) {
	case ANNOTATE:
		return annotate_files(wanted);
	case LOOKUP:
		return look_up(wanted);
	case SERVICES:
	case SERVICES_OF_FILES:
		return services_map(wanted);
	default:
		return mapping_watch(wanted);
	}
}

int cmd_map(int argc, char **argv)
{
	struct map_options wanted = { .interval_ms = 1000 };
	int result = args_parse(&command, argc, argv, &wanted);

	if (result == ARGS_RUN)
		result = run_map(&wanted);
	args_list_clear(&wanted.operands);
	args_list_clear(&wanted.records);
	return result;
}
