/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/flows/flows_request.h"
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
	struct flows_request request;
	enum args_result result;
	int status;

	flows_request_init(&request, &flows_command);
	result = args_parse(&flows_command, argc, argv, &request);
	if (result == ARGS_RUN) {
		request.has_screen = !request.files.n && !request.live;
		result = flows_request_finish(&request);
	}
	status = result == ARGS_WRONG ? EXIT_USAGE : EXIT_FINE;
	if (result == ARGS_RUN)
		status = request.list ? list_interfaces() :
			 request.live ? flows_live(&request) :
					flows_session(&request);
	flows_request_clear(&request);
	return status;
}
