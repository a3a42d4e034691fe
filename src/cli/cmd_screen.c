/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd_screen.h"

#include "cmd.h"
#include "cli/flows/flows_request.h"

enum { DEFAULT_INTERVAL_MS = 1000, DEFAULT_ROWS = 20 };

static enum args_result parse_screen(struct flows_request *request,
				     void (*prepare)(struct flows_request *request),
				     int argc, char **argv)
{
	enum args_result result =
		args_parse(request->command, argc, argv, request);

	if (result != ARGS_RUN)
		return result;
	if (request->once && request->duration_ms) {
		args_complain(request->command,
			      "--once: --interval gives the time, and not -d");
		return ARGS_WRONG;
	}
	if (!request->config.interval_ms)
		request->config.interval_ms = DEFAULT_INTERVAL_MS;
	request->has_screen = !request->once;
	prepare(request);
	result = flows_request_one_output(request);
	if (result == ARGS_RUN)
		result = flows_request_finish(request);
	if (result == ARGS_RUN && !request->view.top)
		request->view.top = DEFAULT_ROWS;
	return result;
}

int cmd_screen(const struct args_command *command,
	       void (*prepare)(struct flows_request *request), int argc,
	       char **argv)
{
	struct flows_request request;
	enum args_result result;
	int status;

	flows_request_init(&request, command);
	result = parse_screen(&request, prepare, argc, argv);
	status = result == ARGS_WRONG ? EXIT_USAGE : EXIT_FINE;
	if (result == ARGS_RUN) {
		flows_request_observe_once(&request);
		status = flows_session(&request);
	}
	flows_request_clear(&request);
	return status;
}
