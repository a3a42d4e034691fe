/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "flows/flows_request.h"
#include "cli/drops/drop_watch.h"
#include "service/observe/altnames.h"

enum { INTERVAL_MIN_MS = 100 };

struct options {
	struct drop_request request;
	struct args_list filter_words;
	int output, by;
	uint32_t verbose;
};

static const struct args_option options[] = {
#define SELECT_drops OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "drops",
	.summary = "Show the packets that this kernel drops, and why",
	.options = options,
	.operands = "[FILTER]",
	.operand_list = offsetof(struct options, filter_words),
	.notes = "FILTER chooses drops by addresses, ports and protocol: see pcap-filter(7).\n",
};

/*
 * Drops have the names of the kernel: add these, beside those that are given, which may be names in other
 * namespaces. @return room for them; NULL: no memory
 */
static void *add_real_names(struct args_list *interfaces)
{
	const size_t n = interfaces->n;
	char(*names)[IF_NAMESIZE] = calloc(n + 1, sizeof(*names));
	const char **items =
		reallocarray(interfaces->items, 2 * n + 1, sizeof(*items));

	interfaces->items = items ?: interfaces->items;
	for (size_t i = 0; names && items && i < n; i++)
		if (altnames_find(items[i], &names[i]) &&
		    strcmp(items[i], names[i]))
			items[interfaces->n++] = names[i];
	return items ? names : NULL;
}

int cmd_drops(int argc, char **argv)
{
	struct options wanted = { .request.interval_ms = 1000 };
	int result = args_parse(&command, argc, argv, &wanted);
	char *filter = NULL;
	void *names = add_real_names(&wanted.request.interfaces);

	if (result == ARGS_RUN &&
	    flows_join_filter(&command, &wanted.filter_words, &filter) < 0)
		result = EXIT_FAILED;
	wanted.request.filter = filter;
	wanted.request.is_json = wanted.output == 1;
	wanted.request.verbose = wanted.verbose;
	wanted.request.by_flow = wanted.by == 1;
	if (result == ARGS_RUN && wanted.request.interval_ms < INTERVAL_MIN_MS) {
		args_complain(&command, "--interval: it is less than %d ms",
			      INTERVAL_MIN_MS);
		result = EXIT_USAGE;
	}
	if (!names)
		args_out_of_memory(&command);
	if (result == ARGS_RUN)
		result = drop_watch(&wanted.request);
	free(filter);
	free(names);
	args_list_clear(&wanted.filter_words);
	args_list_clear(&wanted.request.interfaces);
	return result;
}
