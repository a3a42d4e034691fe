/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include "service/options/args.h"
#include "service/service.h"

struct options {
	const char *path;
};

static const struct args_option options[] = {
#define SELECT_run OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "run",
	.summary = "Observe flows as a service, by a configuration",
	.options = options,
	.positional = "run has no operands; the configuration is -c FILE",
	.notes = "SIGHUP reads the configuration again, SIGTERM delivers what has been seen and\n"
		 "ends the service. netobs.conf(5) describes the configuration.\n",
};

int cmd_run(int argc, char **argv)
{
	struct options wanted = { 0 };
	enum args_result result = args_parse(&command, argc, argv, &wanted);

	return result == ARGS_RUN ? service_run(wanted.path) : (int)result;
}
