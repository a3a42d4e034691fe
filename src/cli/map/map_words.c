/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "map_words.h"

#include <stdio.h>
#include <string.h>

#include "cli/annotate/annotate.h"
#include "base/util.h"
#include "service/options/args_label.h"

enum { TUPLE_MAX = 256 };

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
	{ "slack", 1 << ANNOTATE },
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
static bool check_options(const struct args_command *command,
			  const struct map_words *words,
			  const struct mapping_request *request,
			  enum action action)
{
	uint64_t given = words->given;

	for (const struct args_option *option = command->options; option->name;
	     option++, given >>= 1) {
		if (!(given & 1) || changes(option->name, action))
			continue;
		args_complain(command, "%s: it has no effect with %s",
			      args_label(option->letter, option->name).text,
			      names[action]);
		return false;
	}
	if (words->container_root && !words->container_names) {
		args_complain_alone(command, "--container-root",
				    "--container-names");
		return false;
	}
	if (!request->socket || !request->netns)
		return true;
	args_complain(
		command,
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
static bool check_stdin(const struct args_command *command,
			const struct map_words *words, enum action action)
{
	const bool has_files = action == ANNOTATE || action == SERVICES_OF_FILES;
	const uint32_t n = count_stdin(&words->records) +
			   count_stdin(&words->operands) +
			   (action == ANNOTATE && words->operands.n == 1);

	if (!has_files || n <= 1)
		return true;
	args_complain(command, "-: standard input can be read only once");
	return false;
}

/* All words behind "lookup" are the tuple. */
static int look_up(const struct args_command *command,
		   const struct args_list *operands,
		   struct mapping_request *request)
{
	char tuple[TUPLE_MAX] = "";
	size_t len = 0;

	for (size_t i = 1; i < operands->n && len < sizeof(tuple); i++)
		len += (size_t)snprintf(tuple + len, sizeof(tuple) - len, "%s%s",
					len ? " " : "", operands->items[i]);
	if (len >= sizeof(tuple)) {
		args_complain(command, "lookup: a tuple has less than %d bytes",
			      TUPLE_MAX);
		return EXIT_USAGE;
	}
	request->tuple = tuple;
	request->once = true;
	return mapping_watch(request);
}

static int annotate(const struct map_words *words,
		    const struct mapping_request *request)
{
	return annotate_files(&(struct annotate_request){
		.files = words->operands.items + 1,
		.n_files = words->operands.n - 1,
		.sources = words->records.items,
		.n_sources = words->records.n,
		.socket = request->socket,
		.netns = request->netns,
		.slack_ms = words->slack_ms,
	});
}

static int show_services(const struct map_words *words,
			 const struct mapping_request *request)
{
	return services_map(&(struct services_request){
		.files = words->operands.items,
		.n_files = words->operands.n,
		.format = (enum services_format)words->output,
		.svg = words->svg,
		.container_names = words->container_names,
		.container_root = words->container_root,
		.rows = request->rows,
		.once = request->once,
		.interval_ms = request->interval_ms,
		.duration_ms = request->duration_ms,
		.verbose = request->verbose,
	});
}

/* @return false: the words are wrong, which was printed */
static bool find_action(const struct args_command *command,
			const struct map_words *words, bool once,
			enum action *ret_action)
{
	const struct args_list *operands = &words->operands;
	const char *word = operands->n ? operands->items[0] : "";

	*ret_action = once ? ONCE : LIVE;
	if (words->is_of_services) {
		*ret_action = operands->n ? SERVICES_OF_FILES : SERVICES;
	} else if (words->output == SERVICES_DOT) {
		args_complain(command, "-o dot: it is a format of --services");
		return false;
	} else if (!strcmp(word, "annotate")) {
		*ret_action = ANNOTATE;
	} else if (operands->n > 1 && !strcmp(word, "lookup")) {
		*ret_action = LOOKUP;
	} else if (operands->n) {
		args_complain(command,
			      "'%s': it is 'lookup TUPLE' or 'annotate [FILE...]'; "
			      "only --services takes files without a word",
			      word);
		return false;
	}
	return true;
}

int map_words_run(const struct args_command *command,
		  const struct map_words *words, struct mapping_request *request)
{
	enum action action;

	if (!find_action(command, words, request->once, &action) ||
	    !check_options(command, words, request, action) ||
	    !check_stdin(command, words, action))
		return EXIT_USAGE;
	switch (action) {
	case ANNOTATE:
		return annotate(words, request);
	case LOOKUP:
		return look_up(command, &words->operands, request);
	case SERVICES:
	case SERVICES_OF_FILES:
		return show_services(words, request);
	default:
		return mapping_watch(request);
	}
}
