/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include "service/drop_watch.h"

enum { INTERVAL_MIN_MS = 100 };

struct options {
	struct drop_request request;
	int output, by;
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
	.positional = "drops has no operands",
};

int cmd_drops(int argc, char **argv)
{
	struct options wanted = { .request.interval_ms = 1000 };
	int result = args_parse(&command, argc, argv, &wanted);

	wanted.request.is_json = wanted.output == 1;
	wanted.request.by_flow = wanted.by == 1;
	if (result == ARGS_RUN && wanted.request.interval_ms < INTERVAL_MIN_MS) {
		args_complain(&command, "--interval: it is less than %d ms",
			      INTERVAL_MIN_MS);
		result = EXIT_USAGE;
	}
	if (result == ARGS_RUN)
		result = drop_watch(&wanted.request);
	args_list_clear(&wanted.request.interfaces);
	return result;
}
