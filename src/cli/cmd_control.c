/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The verbs that ask a running service: status, metrics, reload, reopen. */
#include "cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/options/args.h"
#include "base/text.h"
#include "base/util.h"
#include "cli/client/client.h"
#include "cli/view/print.h"
#include "service/control/control.h"

enum { OUTPUT_TABLE, OUTPUT_JSON };

enum { METRICS_AS_TEXT, METRICS_AS_JSON };

struct options {
	const char *socket;
	int output;
};

static const struct args_option status_options[] = {
#define SELECT_status OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
#undef SELECT_status
};

static const struct args_option metrics_options[] = {
#define SELECT_metrics OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
#undef SELECT_metrics
};

static const struct args_option common_options[] = {
#define SELECT_reload OPTION_SELECTED
#define OPTIONS_STRUCT struct options
#include "service/options/option_rows.h"
#undef SELECT_reload
};

static const struct args_command status_command = {
	.name = "status",
	.summary = "Show what the running service does",
	.options = status_options,
	.positional = "status has no operands",
};

static const struct args_command metrics_command = {
	.name = "metrics",
	.summary = "Print the metrics of the running service",
	.options = metrics_options,
	.positional = "metrics has no operands",
	.notes = "[metrics] of its configuration serves the same over HTTP, but need not be there.\n",
};

static const struct args_command reload_command = {
	.name = "reload",
	.summary = "Have the running service read its configuration again",
	.options = common_options,
	.positional = "reload has no operands",
	.notes = "Waits until the configuration is in use, or prints its errors.\n",
};

static const struct args_command reopen_command = {
	.name = "reopen",
	.summary = "Have the running service open its files anew, as after a rotation",
	.options = common_options,
	.positional = "reopen has no operands",
};

/*
 * Print messages that the service logged during the request, except the outcome, which has been
 * printed. The texts contain FILE:LINE:COLUMN.
 */
static void print_messages(struct json_value answer)
{
	struct json_item item = { 0 };
	char level[16], text[4096], outcome[512];

	json_get_text(answer, "message", outcome, sizeof(outcome));
	while (json_next(json_get(answer, "messages"), &item)) {
		json_get_text(item.value, "level", level, sizeof(level));
		json_get_text(item.value, "text", text, sizeof(text));
		if (!strcmp(text, outcome))
			continue;
		safe_cell(text);
		fprintf(stderr, "%s%s\n",
			strcmp(level, "warning") ? "" : "warning: ", text);
	}
}

/* @return 0; < 0: it failed, which was reported */
typedef int print_answer(const struct options *wanted, struct json_value answer);

static int print_status(const struct options *wanted, struct json_value answer)
{
	struct json_value status = json_get(answer, "status");

	if (wanted->output == OUTPUT_JSON)
		printf("%.*s\n", (int)json_length(status), status.at);
	else
		status_print(answer);
	return 0;
}

/* @series: NAME{LABELS} */
static void print_member(const char *series, const char *value, const char *before)
{
	printf("%s\n", before);
	print_json_string(series);
	printf(":%s", value);
}

static void print_metrics_json(char *text)
{
	const char *before = "";
	char *line, *space;

	putchar('{');
	while ((line = strsep(&text, "\n"))) {
		space = strrchr(line, ' ');
		if (*line == '#' || !space)
			continue;
		*space = '\0';
		print_member(line, space + 1, before);
		before = ",";
	}
	puts("\n}");
}

/* Control characters in the answer cannot steer a terminal. */
static void print_lines(char *text)
{
	char *line;

	if (!isatty(STDOUT_FILENO)) {
		fputs(text, stdout);
		return;
	}
	while ((line = strsep(&text, "\n")) && (text || *line)) {
		safe_line(line);
		puts(line);
	}
}

static int print_metrics(const struct options *wanted, struct json_value answer)
{
	struct json_value metrics = json_get(answer, "metrics");
	const size_t size = metrics.at ? json_length(metrics) : 1;
	cleanup_free char *text = malloc(size);

	if (!text) {
		fprintf(stderr, "netobsctl metrics: out of memory\n");
		return -ENOMEM;
	}
	json_text(metrics, text, size);
	if (wanted->output == METRICS_AS_JSON)
		print_metrics_json(text);
	else
		print_lines(text);
	return 0;
}

/* @print: NULL: nothing is printed. @return an exit status */
static int ask_service(const char *verb, const struct options *wanted,
		       const char *request, print_answer *print)
{
	struct control_connection connection;
	struct json_value answer = { NULL };
	int r = control_connect(&connection, verb, wanted->socket, request);

	r = r ?: control_answer(&connection, &answer);
	print_messages(answer);
	if (r == 0 && print)
		r = print(wanted, answer);
	control_disconnect(&connection);
	return r < 0 ? EXIT_FAILED : EXIT_FINE;
}

static int parse_and_ask(const struct args_command *command,
			 print_answer *print, int argc, char **argv)
{
	struct options wanted = { .output = OUTPUT_TABLE };
	enum args_result result = args_parse(command, argc, argv, &wanted);

	if (result != ARGS_RUN)
		return result;
	return ask_service(command->name, &wanted, command->name, print);
}

int cmd_status(int argc, char **argv)
{
	return parse_and_ask(&status_command, print_status, argc, argv);
}

int cmd_metrics(int argc, char **argv)
{
	return parse_and_ask(&metrics_command, print_metrics, argc, argv);
}

int cmd_reload(int argc, char **argv)
{
	return parse_and_ask(&reload_command, NULL, argc, argv);
}

int cmd_reopen(int argc, char **argv)
{
	return parse_and_ask(&reopen_command, NULL, argc, argv);
}
