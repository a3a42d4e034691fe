/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "map_words.h"

#include <stdio.h>
#include <string.h>

#include "annotate/annotate.h"

enum { TUPLE_MAX = 256 };

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
	const bool is_annotate = !strcmp(word, "annotate");

	if (words->records.n && !is_annotate) {
		args_complain(command, "--records: it is for annotate");
		return EXIT_USAGE;
	}
	if (!operands->n)
		return mapping_watch(request);
	if (operands->n > 1 && is_annotate)
		return annotate(words, request);
	if (operands->n > 1 && !strcmp(word, "lookup"))
		return look_up(command, operands, request);
	args_complain(command,
		      "'%s': it is 'lookup TUPLE' or 'annotate FILE...'", word);
	return EXIT_USAGE;
}
