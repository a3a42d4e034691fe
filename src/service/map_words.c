/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "map_words.h"

#include <stdio.h>
#include <string.h>

#include "annotate/annotate.h"
#include "base/util.h"

enum { TUPLE_MAX = 256 };

/* What is done. */
enum action { LIVE, ONCE, LOOKUP, ANNOTATE };

static const char *const names[] = { "the live table", "--once", "lookup",
				     "annotate" };

/* What an option changes. All others change all of it. */
static const struct {
	const char *option;
	unsigned int actions;
} uses[] = {
	{ "output", 1 << LIVE | 1 << ONCE | 1 << LOOKUP },
	{ "rows", 1 << LIVE | 1 << ONCE | 1 << LOOKUP },
	{ "interval", 1 << LIVE },
	{ "duration", 1 << LIVE },
	{ "once", 1 << ONCE },
	{ "records", 1 << ANNOTATE },
	{ "slack", 1 << ANNOTATE },
};

static bool changes(const char *option, enum action action)
{
	for (size_t i = 0; i < ARRAY_SIZE(uses); i++)
		if (!strcmp(uses[i].option, option))
			return uses[i].actions & 1U << action;
	return true;
}

/* @return false: one was given that changes nothing, which was printed */
static bool check_options(const struct args_command *command, uint64_t given,
			  const struct mapping_request *request,
			  enum action action)
{
	for (const struct args_option *option = command->options; option->name;
	     option++, given >>= 1) {
		if (!(given & 1) || changes(option->name, action))
			continue;
		args_complain(command, "%s: it has no effect with %s",
			      args_label(option->letter, option->name).text,
			      names[action]);
		return false;
	}
	if (!request->socket || !request->netns)
		return true;
	args_complain(
		command,
		"--netns: no service is asked then, so there is no --socket");
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

int map_words_run(const struct args_command *command,
		  const struct map_words *words, struct mapping_request *request)
{
	const struct args_list *operands = &words->operands;
	const char *word = operands->n ? operands->items[0] : "";
	enum action action = request->once ? ONCE : LIVE;

	if (operands->n > 1 && !strcmp(word, "annotate")) {
		action = ANNOTATE;
	} else if (operands->n > 1 && !strcmp(word, "lookup")) {
		action = LOOKUP;
	} else if (operands->n) {
		args_complain(command,
			      "'%s': it is 'lookup TUPLE' or 'annotate FILE...'",
			      word);
		return EXIT_USAGE;
	}
	if (!check_options(command, words->given, request, action))
		return EXIT_USAGE;
	if (action == ANNOTATE)
		return annotate(words, request);
	return action == LOOKUP ? look_up(command, operands, request) :
				  mapping_watch(request);
}
