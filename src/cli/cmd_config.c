/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <stdio.h>
#include <string.h>

#include "service/options/args.h"
#include "base/suggest.h"
#include "service/service_config.h"

enum { OUTPUT_TABLE, OUTPUT_JSON };

struct options {
	int output;
	struct args_list operands; /* the action, and the file */
};

static const struct args_option options[] = {
#define SELECT_config OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "config",
	.operands = "check|show [FILE]",
	.summary = "Check or show the configuration of the service",
	.options = options,
	.operand_list = offsetof(struct options, operands),
	.notes = "check: print each error as FILE:LINE:COLUMN: MESSAGE.\n"
		 "show: print all keys with their values and where these come from.\n"
		 "Without FILE: " SERVICE_CONFIG_FILE
		 ", or else that in /usr/lib/netobs.\n",
};

static void print_error(const char *line, void *user)
{
	(void)user;
	fprintf(stderr, "%s\n", line);
}

static int check_config(const char *path)
{
	struct service_config config;
	unsigned int errors =
		service_config_read(&config, path, false, print_error, NULL);

	if (errors > CONF_ERRORS_MAX)
		fprintf(stderr, "and %u more errors\n", errors - CONF_ERRORS_MAX);
	service_config_clear(&config);
	return errors ? EXIT_FAILED : EXIT_FINE;
}

static int show_config(const char *path, bool is_json)
{
	struct service_config config;
	int r = service_config_read(&config, path, false, print_error, NULL) ?
			-1 :
			0;

	if (r == 0)
		r = service_config_print(&config, is_json);
	service_config_clear(&config);
	return r < 0 ? EXIT_FAILED : EXIT_FINE;
}

static int refuse_word(const char *word)
{
	struct suggestion suggestion = suggestion_for(word, strlen(word));
	const char *best;

	suggestion_offer(&suggestion, "check");
	suggestion_offer(&suggestion, "show");
	best = suggestion_best(&suggestion);
	args_complain(&command, "'%s' is not check or show%s%s%s", word,
		      best ? "; did you mean '" : "", best ?: "",
		      best ? "'?" : "");
	return EXIT_USAGE;
}

static int run_config(const struct options *wanted)
{
	const struct args_list *operands = &wanted->operands;
	const char *path = operands->n > 1 ? operands->items[1] : NULL;

	if (!operands->n || operands->n > 2) {
		args_complain(&command, operands->n ?
						"there is more than one FILE" :
						"check or show?");
		return EXIT_USAGE;
	}
	if (!strcmp(operands->items[0], "show"))
		return show_config(path, wanted->output == OUTPUT_JSON);
	if (wanted->output >= 0) {
		args_complain(&command, "-o: it is for show");
		return EXIT_USAGE;
	}
	if (!strcmp(operands->items[0], "check"))
		return check_config(path);
	return refuse_word(operands->items[0]);
}

int cmd_config(int argc, char **argv)
{
	struct options wanted = { .output = -1 };
	enum args_result result = args_parse(&command, argc, argv, &wanted);
	int status = result == ARGS_RUN ? run_config(&wanted) : (int)result;

	args_list_clear(&wanted.operands);
	return status;
}
