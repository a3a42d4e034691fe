/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "service/observe/flows_config.h"
#include "service/options/interfaces.h"

static int list_interfaces(void)
{
	int r = interfaces_print();

	if (r == 0)
		return EXIT_FINE;
	fprintf(stderr, "netobsctl flows: cannot list interfaces: %s\n",
		strerror(-r));
	return EXIT_FAILED;
}

int cmd_flows(int argc, char **argv)
{
	struct flows_config config;
	enum args_result result;
	int status;

	flows_config_init(&config, &flows_command);
	result = args_parse(&flows_command, argc, argv, &config);
	if (result == ARGS_RUN) {
		config.has_screen = !config.files.n && !config.live;
		result = flows_config_finish(&config);
	}
	status = result == ARGS_WRONG ? EXIT_USAGE : EXIT_FINE;
	if (result == ARGS_RUN)
		status = config.list ? list_interfaces() :
			 config.live ? flows_live(&config) :
				       flows_session(&config);
	flows_config_clear(&config);
	return status;
}
