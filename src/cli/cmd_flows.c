/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include "cli/flows/flows_request.h"

int cmd_flows(int argc, char **argv)
{
	struct flows_request request = { .command = &flows_command };
	enum args_result result =
		args_parse(&flows_command, argc, argv, &request);
	int status;

	if (result == ARGS_RUN) {
		request.has_screen = !request.files.n && !request.live;
		result = flows_request_finish(&request);
	}
	status = result;
	if (result == ARGS_RUN)
		status = request.live ? flows_live(&request) :
					flows_session(&request);
	flows_request_clear(&request);
	return status;
}
