/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "args.h"

#include "base/options.h"
#include "base/text.h"
#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <netobs/netobs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MAX_OPTIONS = 48,
	LONG_BASE = 256, /* getopt_long() codes, beyond any letter */
	LONG_HELP = LONG_BASE + MAX_OPTIONS,
	HELP_COLUMN = 30,
};

void args_complain(const struct args_command *command, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "netobsctl %s: ", command->name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\nTry 'netobsctl %s -h'.\n", command->name);
}

void args_complain_alone(const struct args_command *command, const char *option,
			 const char *other)
{
	args_complain(command, "%s: needs %s", option, other);
}

int args_log_level(uint32_t verbose)
{
	return verbose > 1  ? NETOBS_LOG_DEBUG :
	       verbose == 1 ? NETOBS_LOG_INFO :
			      NETOBS_LOG_WARNING;
}

bool args_report_log(const char *command, uint32_t verbose, int level,
		     const char *message)
{
	char text[512];

	if (level > args_log_level(verbose))
		return false;
	option_name_write(message, text, sizeof(text));
	safe_cell(text);
	fprintf(stderr, "netobsctl %s: %s%s\n", command,
		level == NETOBS_LOG_WARNING ? "warning: " : "", text);
	return level <= NETOBS_LOG_ERROR;
}

int args_refusal_status(int error)
{
	return error == -EINVAL || error == -E2BIG ? EXIT_USAGE : EXIT_FAILED;
}

void args_report_failure(const char *command, bool is_known, const char *doing,
			 int error)
{
	if (!is_known)
		fprintf(stderr, "netobsctl %s: cannot %s: %s\n", command, doing,
			strerror(-error));
	if (error == -EPERM)
		fprintf(stderr, "%s 'netobsctl check' for what is missing.\n",
			geteuid() ? "Run it as root, or see" : "See");
}

void args_out_of_memory(const struct args_command *command)
{
	fprintf(stderr, "netobsctl %s: out of memory\n", command->name);
	exit(EXIT_FAILURE);
}

void args_list_clear(struct args_list *list)
{
	free(list->items);
	*list = (struct args_list){ 0 };
}

static bool takes_argument(const struct args_option *option)
{
	return option->type != ARGS_SWITCH && option->type != ARGS_REPEAT;
}

static void print_option(const struct args_option *option)
{
	int width = *option->letter ? printf("  -%s, ", option->letter) :
				      printf("      ");

	width += printf("--%s", option->name);
	if (takes_argument(option))
		width += printf(" %s", option->metavar);
	if (width >= HELP_COLUMN) {
		putchar('\n');
		width = 0;
	}
	printf("%*s%s", HELP_COLUMN - width, "", option->help);
	if (*option->otherwise && strcmp(option->otherwise, "no") != 0)
		printf(" (default %s)", option->otherwise);
	putchar('\n');
}

static void print_help(const struct args_command *command)
{
	printf("Usage: netobsctl %s %s%s[OPTIONS]\n%s.\n\nOptions:\n",
	       command->name, command->operands ? command->operands : "",
	       command->operands ? " " : "", command->summary);
	for (const struct args_option *o = command->options; o->name; o++)
		print_option(o);
	printf("  -h, --help%*sthis text\n", HELP_COLUMN - 12, "");
	if (command->notes)
		printf("\n%s", command->notes);
	printf("\nManual page: netobsctl-%s(8)\n", command->name);
}

static int list_add(struct args_list *list, const char *item)
{
	const char **items =
		reallocarray(list->items, list->n + 2, sizeof(*items));

	if (!items)
		return -ENOMEM;
	list->items = items;
	items[list->n++] = item;
	items[list->n] = NULL;
	return 0;
}

/* Fields of 32 bits, but for ARGS_NUMBER and ARGS_BYTES. */
static int store_number(const struct args_option *option, const char *text,
			void *field)
{
	static const struct {
		enum value_kind kind;
		uint64_t most;
	} of_types[] = {
		[ARGS_SECONDS] = { VALUE_DURATION, INT32_MAX },
		[ARGS_NUMBER] = { VALUE_NUMBER, UINT64_MAX },
		[ARGS_NUMBER32] = { VALUE_NUMBER, UINT32_MAX },
		[ARGS_BYTES] = { VALUE_BYTES, UINT64_MAX },
	};
	uint64_t most = of_types[option->type].most, number;
	int err =
		value_parse(of_types[option->type].kind, text, 1, most, &number);

	if (err)
		return err;
	if (most <= UINT32_MAX)
		*(uint32_t *)field = (uint32_t)number;
	else
		*(uint64_t *)field = number;
	return 0;
}

int args_store(const struct args_option *option, const char *text, void *config)
{
	void *field = (char *)config + option->offset;
	int choice;

	switch (option->type) {
	case ARGS_SWITCH:
		*(bool *)field = true;
		return 0;
	case ARGS_REPEAT:
		++*(uint32_t *)field;
		return 0;
	case ARGS_STRING:
		*(const char **)field = text;
		return *text ? 0 : -EINVAL;
	case ARGS_LIST:
		return *text ? list_add(field, text) : -EINVAL;
	case ARGS_CHOICE:
		choice = value_choice(option->choices, text);
		if (choice < 0)
			return choice;
		*(int *)field = choice;
		return 0;
	default:
		return store_number(option, text, field);
	}
}

const char *args_expectation(const struct args_option *option)
{
	switch (option->type) {
	case ARGS_SECONDS:
		return "a duration from 1ms to 24d, such as 0.5 (seconds), 90s, 5m or 1h";
	case ARGS_NUMBER:
		return "a whole number, at least 1";
	case ARGS_NUMBER32:
		return "a whole number from 1 to 4294967295";
	case ARGS_BYTES:
		return "a number of bytes, such as 64M (K, M and G are powers of 1024)";
	case ARGS_CHOICE:
		return option->metavar;
	default:
		return "a name";
	}
}

static enum args_result apply_option(const struct args_command *command,
				     const struct args_option *option,
				     const char *text, void *config)
{
	int r = args_store(option, text, config);

	if (r == 0)
		return ARGS_RUN;
	if (r == -ENOMEM)
		args_out_of_memory(command);
	if (*option->letter)
		args_complain(command, "-%s, --%s: '%s' is not %s",
			      option->letter, option->name, text,
			      args_expectation(option));
	else
		args_complain(command, "--%s: '%s' is not %s", option->name,
			      text, args_expectation(option));
	return ARGS_WRONG;
}

/* @typed, "--name" or "--name=value", is none, or could be several options. */
static void complain_name(const struct args_command *command, const char *typed)
{
	const char *name = typed + 2, *best, *before = "";
	const size_t len = strcspn(name, "=");
	struct suggestion suggestion = suggestion_for(name, len);
	char all[256] = "";

	for (const struct args_option *o = command->options; o->name; o++) {
		size_t used = strlen(all);

		suggestion_offer(&suggestion, o->name);
		if (strncmp(o->name, name, len) != 0)
			continue;
		snprintf(all + used, sizeof(all) - used, "%s--%s", before,
			 o->name);
		before = ", ";
	}
	best = suggestion_best(&suggestion);
	if (*all)
		args_complain(command, "ambiguous option '%s': %s", typed, all);
	else if (best)
		args_complain(command,
			      "unknown option '%s'; did you mean '--%s'?",
			      typed, best);
	else
		args_complain(command, "unknown option '%s'", typed);
}

/* Names the option as it was typed; getopt_long() keeps only parts of it. */
static void complain_option(const struct args_command *command, int code,
			    char **argv)
{
	const char *typed = argv[optind - 1];
	const struct args_option *option = NULL;

	if (code == ':') {
		args_complain(command, "option '%s' needs a value", typed);
		return;
	}
	if (optopt >= LONG_BASE && optopt < LONG_HELP)
		option = &command->options[optopt - LONG_BASE];
	if (option || optopt == LONG_HELP)
		args_complain(command, "option '--%s' takes no value",
			      option ? option->name : "help");
	else if (optopt)
		args_complain(command, "unknown option '-%c'", optopt);
	else
		complain_name(command, typed);
}

/* The option that getopt_long() returned @code for. */
static const struct args_option *find_option(const struct args_command *command,
					     int code)
{
	const struct args_option *o = command->options;

	if (code >= LONG_BASE)
		return &o[code - LONG_BASE];
	while (*o->letter != code)
		o++;
	return o;
}

static void note_given(const struct args_command *command,
		       const struct args_option *option, void *config)
{
	uint64_t *given = (uint64_t *)((char *)config + command->given);

	if (command->given)
		*given |= UINT64_C(1) << (option - command->options);
}

const struct args_option *args_find_given(const struct args_command *command,
					  uint64_t given, enum args_source source)
{
	const struct args_option *option = command->options;

	for (; option->name; option++)
		if (given & UINT64_C(1) << (option - command->options) &&
		    option->source >= source)
			return option;
	return NULL;
}

/* The two tables that getopt_long() takes. */
struct getopt_tables {
	char letters[2 * MAX_OPTIONS + 4];
	struct option names[MAX_OPTIONS + 2];
};

static void fill_tables(const struct args_command *command,
			struct getopt_tables *tables)
{
	char *letter = tables->letters;
	int n = 0;

	*tables = (struct getopt_tables){ 0 };
	*letter++ = ':'; /* distinguishes a missing value from an unknown option */
	*letter++ = 'h';
	for (const struct args_option *o = command->options; o->name; o++, n++) {
		bool value = takes_argument(o);

		assert(n < MAX_OPTIONS);
		tables->names[n] =
			(struct option){ o->name,
					 value ? required_argument : no_argument,
					 NULL, LONG_BASE + n };
		if (*o->letter) {
			*letter++ = *o->letter;
			if (value)
				*letter++ = ':';
		}
	}
	tables->names[n] =
		(struct option){ "help", no_argument, NULL, LONG_HELP };
}

static enum args_result take_operands(const struct args_command *command,
				      int argc, char **argv, void *config)
{
	for (int i = optind; i < argc; i++) {
		void *list = (char *)config + command->operand_list;
		int err = command->operand_list ? list_add(list, argv[i]) :
						  -EINVAL;

		if (!err)
			continue;
		if (err == -ENOMEM)
			args_out_of_memory(command);
		args_complain(command, "'%s': %s", argv[i], command->positional);
		return ARGS_WRONG;
	}
	return ARGS_RUN;
}

enum args_result args_parse(const struct args_command *command, int argc,
			    char **argv, void *config)
{
	struct getopt_tables tables;
	int code;

	fill_tables(command, &tables);
	opterr = 0;
	optind = 0; /* start anew: main() may have parsed before */
	while ((code = getopt_long(argc, argv, tables.letters, tables.names,
				   NULL)) != -1) {
		const struct args_option *option;
		enum args_result result;

		if (code == 'h' || code == LONG_HELP) {
			print_help(command);
			return ARGS_HELP;
		}
		if (code == '?' || code == ':') {
			complain_option(command, code, argv);
			return ARGS_WRONG;
		}
		option = find_option(command, code);
		result = apply_option(command, option, optarg, config);
		if (result != ARGS_RUN)
			return result;
		note_given(command, option, config);
	}
	return take_operands(command, argc, argv, config);
}

/* ---- Names of options ---------------------------------------------------------------- */

#define SELECT_flows OPTION_SELECTED
#define SELECT_capture OPTION_SELECTED
#define SELECT_trace OPTION_SELECTED
#define MEMBER_interfaces(member) #member
#define MEMBER_packets(member) #member
#define MEMBER_own(member) #member
#define MEMBER_traces(member) "opts." #member

static const char of_library[] = "opts.";

static const struct option_name names[] = {
	{ "opts.interfaces", "i", "interface", "capture", "interface" },
	{ "opts.exclude", "x", "exclude", "capture", "exclude" },
	{ "opts.filter", "", "", "capture", "filter" },
	{ "opts.rtt", "", "rtt", "capture", "rtt" },
#define OPTION(letter, name, type, member, otherwise, verbs, help) \
	OPTION_IF(verbs, { MEMBER_##member, letter, name, NULL, NULL }, )
#define OPTION_KEY(section, key, change, letter, name, type, member, \
		   otherwise, verbs, help)                           \
	OPTION_IF(verbs, { MEMBER_##member, letter, name, #section, #key }, )
#include "catalogue/options.def"
};

struct args_label args_label(const char *letter, const char *name)
{
	struct args_label label;

	snprintf(label.text, sizeof(label.text), "%s%s", *letter ? "-" : "--",
		 *letter ? letter : name);
	return label;
}

const struct option_name *option_name_of(const char *message,
					 const char **ret_rest)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *name = names[i].member;
		size_t len;

		if (strncmp(name, of_library, strlen(of_library)) != 0)
			continue;
		name += strlen(of_library);
		len = strlen(name);
		if (strncmp(message, name, len) != 0 || message[len] != ':')
			continue;
		*ret_rest = message + len + 1;
		return &names[i];
	}
	return NULL;
}

void option_name_write(const char *message, char *ret_text, size_t size)
{
	const char *rest;
	const struct option_name *option = option_name_of(message, &rest);

	if (option && *option->name)
		snprintf(ret_text, size, "%s:%s",
			 args_label(option->letter, option->name).text, rest);
	else
		snprintf(ret_text, size, "%s", message);
}
