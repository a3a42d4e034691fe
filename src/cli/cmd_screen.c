/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd_screen.h"

#include "cmd.h"
#include "service/observe/flows_config.h"

enum { DEFAULT_INTERVAL_MS = 1000, DEFAULT_ROWS = 20 };

static enum args_result parse(struct flows_config *config,
			      void (*prepare)(struct flows_config *config),
			      int argc, char **argv)
{
	enum args_result result = args_parse(config->command, argc, argv, config);

	if (result != ARGS_RUN)
		return result;
	if (config->once && config->duration_ms) {
		args_complain(config->command,
			      "--once: --interval gives the time, and not -d");
		return ARGS_WRONG;
	}
	if (!config->interval_ms)
		config->interval_ms = DEFAULT_INTERVAL_MS;
	config->has_screen = !config->once;
	prepare(config);
	result = flows_config_one_output(config);
	if (result == ARGS_RUN)
		result = flows_config_finish(config);
	if (result == ARGS_RUN && !config->view.top)
		config->view.top = config->top ? config->top : DEFAULT_ROWS;
	return result;
}

int cmd_screen(const struct args_command *command,
	       void (*prepare)(struct flows_config *config), int argc,
	       char **argv)
{
	struct flows_config config;
	enum args_result result;
	int status;

	flows_config_init(&config, command);
	result = parse(&config, prepare, argc, argv);
	status = result == ARGS_WRONG ? EXIT_USAGE : EXIT_FINE;
	if (result == ARGS_RUN) {
		flows_config_observe_once(&config);
		status = flows_session(&config);
	}
	flows_config_clear(&config);
	return status;
}
