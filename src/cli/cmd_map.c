/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "cmd.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <netobs/netobs.h>

#include "base/clock_ms.h"
#include "base/text.h"
#include "base/util.h"
#include "cli/client/client.h"
#include "cli/services/services_view.h"
#include "cli/view/verb_run.h"
#include "service/options/privileges.h"

enum { TUPLE_MAX = 256 };

static const struct args_option options[] = {
#define SELECT_map OPTION_SELECTED
#define OPTIONS_STRUCT struct map_options
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "map",
	.summary = "Show what NAT of this host translates, or who uses which service",
	.options = options,
	.operands = "[lookup TUPLE | annotate [FILE...] | --services [FILE...]]",
	.operand_list = offsetof(struct map_options, operands),
	.given = offsetof(struct map_options, given),
	.notes =
		"TUPLE is of either direction, before or after translation, or a part of it:\n"
		"'10.0.0.2:40000 > 192.0.2.1:80/tcp', '192.0.2.1:80', '[2001:db8::1]:443/udp', 'icmp'.\n"
		"A running service with 'nat = yes' is asked; it also knows what ended in the last\n"
		"minute. Without it, lookup and --once list the kernel's table of connections.\n"
		"annotate adds to records of other programs in JSON, such as those of nfdump -o json, what\n"
		"netobs knows of their conversations, by --records, or by mappings.\n"
		"--services shows who uses which service: on this host, or by records of many hosts in\n"
		"FILEs, which are lines of JSON. Each conversation counts once.\n",
};

/* The variant of the command. */
enum action { LIVE, ONCE, LOOKUP, ANNOTATE, SERVICES, SERVICES_OF_FILES };

static const char *const names[] = {
	[LIVE] = "the live table", [ONCE] = "--once",
	[LOOKUP] = "lookup",	   [ANNOTATE] = "annotate",
	[SERVICES] = "--services", [SERVICES_OF_FILES] = "--services of files",
};

/* The variant that an option selects. Any other option changes all variants. */
static const struct {
	const char *option;
	unsigned int actions;
} uses[] = {
	{ "output", ~(1U << ANNOTATE) },
	{ "rows", ~(1U << ANNOTATE) },
	{ "interval", 1 << LIVE | 1 << SERVICES },
	{ "duration", 1 << LIVE | 1 << SERVICES },
	{ "once", 1 << ONCE | 1 << SERVICES },
	{ "records", 1 << ANNOTATE },
	{ "services", 1 << SERVICES | 1 << SERVICES_OF_FILES },
	{ "svg", 1 << SERVICES | 1 << SERVICES_OF_FILES },
	{ "container-names", 1 << SERVICES },
	{ "container-root", 1 << SERVICES },
	{ "netns", ~(1U << SERVICES | 1U << SERVICES_OF_FILES) },
	{ "socket", ~(1U << SERVICES | 1U << SERVICES_OF_FILES) },
};

static bool changes(const char *option, enum action action)
{
	for (size_t i = 0; i < ARRAY_SIZE(uses); i++)
		if (!strcmp(uses[i].option, option))
			return uses[i].actions & 1U << action;
	return true;
}

/* @return false: one was given that changes nothing, which was printed */
static bool check_options(const struct map_options *wanted, enum action action)
{
	uint64_t given = wanted->given;

	for (const struct args_option *option = command.options; option->name;
	     option++, given >>= 1) {
		if (!(given & 1) || changes(option->name, action))
			continue;
		args_complain(&command, "%s: it has no effect with %s",
			      args_label(option->letter, option->name).text,
			      names[action]);
		return false;
	}
	if (wanted->container_root && !wanted->container_names) {
		args_complain_alone(&command, "--container-root",
				    "--container-names");
		return false;
	}
	if (!wanted->socket || !wanted->netns)
		return true;
	args_complain(
		&command,
		"--netns: it lists the kernel's table, and cannot be combined with --socket");
	return false;
}

static uint32_t count_stdin(const struct args_list *paths)
{
	uint32_t n = 0;

	for (size_t i = 0; i < paths->n; i++)
		n += !strcmp(paths->items[i], "-");
	return n;
}

/* @return false: standard input is several files, which was printed */
static bool check_stdin(const struct map_options *wanted, enum action action)
{
	const bool has_files = action == ANNOTATE || action == SERVICES_OF_FILES;
	const uint32_t n = count_stdin(&wanted->records) +
			   count_stdin(&wanted->operands) +
			   (action == ANNOTATE && wanted->operands.n == 1);

	if (!has_files || n <= 1)
		return true;
	args_complain(&command, "-: standard input can be read only once");
	return false;
}

/* ---- The mappings -------------------------------------------------------------------- */

/* Mappings of a running service, of a context of its own, or of the kernel. */
struct watch {
	struct verb verb; /* without an observer: the kernel is asked, or the service */
	const struct map_options *options;
	struct netobs_mapping_query query; /* options->tuple, parsed */
	bool has_service;
	struct mapping_list list;
	int64_t due_ms; /* when the table is shown next; 0: not known yet */
};

static bool is_json(const struct watch *watch)
{
	return watch->options->output == SERVICES_JSON;
}

/* ---- Sources ---------------------------------------------------------------------- */

static int collect_of_context(struct watch *watch)
{
	uint64_t cursor = 0;
	int r;

	while ((r = netobs_mappings(watch->verb.observer, &cursor,
				    mapping_list_add, &watch->list)) > 0)
		;
	return r;
}

/* @return 0; < 0: it failed, which was printed */
static int collect(struct watch *watch)
{
	int r;

	mapping_list_clear(&watch->list);
	if (watch->has_service)
		r = mapping_list_ask(&watch->list, watch->options->socket,
				     watch->options->tuple, &watch->has_service);
	else
		r = watch->verb.observer ?
			    collect_of_context(watch) :
			    mapping_list_kernel(&watch->list,
						watch->options->netns);
	mapping_list_sort(&watch->list);
	if (!r && watch->list.is_out_of_memory) {
		fprintf(stderr, "netobsctl map: cannot keep all mappings: %s\n",
			strerror(ENOMEM));
		r = -ENOMEM;
	}
	return r;
}

/* ---- Showing ---------------------------------------------------------------------- */

/* Wider lines would take two rows. Once, all are printed, as wide as they are. */
static void show_table(struct watch *watch)
{
	if (!watch->options->once)
		live_begin(&watch->verb.live, "translations by NAT",
			   watch->options->interval_ms);
	mapping_list_print_table(
		&watch->list, live_room(&watch->verb.live, watch->options->rows),
		watch->verb.live.columns);
	if (watch->verb.live.is_screen && !watch->list.n)
		puts("No connection is translated now.");
}

/* @return 0; < 0: it could not be written, which was reported unless it is -EPIPE */
static int show(struct watch *watch)
{
	if (is_json(watch))
		mapping_list_print_json(&watch->list, watch->options->rows);
	else
		show_table(watch);
	return verb_flush(&watch->verb);
}

/* ---- Runs ------------------------------------------------------------------------- */

static int show_once(struct watch *watch)
{
	const char *tuple = watch->options->tuple;
	const int r = collect(watch);

	if (r)
		return r;
	if (tuple && !watch->list.n) {
		fprintf(stderr, "netobsctl map: no mapping has %s%s\n", tuple,
			watch->has_service ?
				"" :
				" now; those that have ended are known to a service with "
				"'nat = yes'");
		return -ENOENT;
	}
	show(watch);
	return 1;
}

/* @return 0; 1: a signal came before there was a context; < 0: it failed, which was reported */
static int observe(struct watch *watch)
{
	struct verb *verb = &watch->verb;
	NETOBS_OPTS(netobs_opts, opts, .flags = NETOBS_NAT,
		    .interval_ms = watch->options->interval_ms,
		    .on_log = verb_log, .user = watch);
	int r = netobs_new(&opts, &watch->verb.observer);

	if (r < 0)
		verb->status = args_refusal_status(r);
	else if (verb->is_stopping)
		return 1;
	r = r ?: netobs_start(watch->verb.observer);
	if (r < 0)
		return verb_fail(verb, "start", r);
	privileges_drop(NULL, KEEP_FILES | KEEP_PROGRAMS | KEEP_PROCESSES);
	return 0;
}

static int start_watch(void *object)
{
	struct watch *watch = object;
	int r = 0;

	if (watch->options->once)
		return show_once(watch);
	if (!watch->has_service && !watch->options->netns)
		r = observe(watch);
	if (r)
		return r;
	live_start(&watch->verb.live, !is_json(watch));
	if (watch->verb.live.is_screen)
		show(watch); /* the headings */
	else
		live_say("map", "waiting for translations by NAT");
	return 0;
}

/* An interval begins here, after the last table and after the end of the run is known. */
static int find_wait(void *object)
{
	struct watch *watch = object;

	if (watch->verb.is_stopping)
		return watch->verb.observer ? -1 : 0;
	if (!watch->due_ms)
		watch->due_ms = now_ms() + watch->options->interval_ms;
	return left_ms(watch->due_ms);
}

/* Show the table at the end of an interval, or of it all. */
static int dispatch_watch(void *object)
{
	struct watch *watch = object;
	struct verb *verb = &watch->verb;
	const int r = watch->verb.observer ?
			      netobs_dispatch(watch->verb.observer) :
		      verb->is_stopping ? -ECANCELED :
					  0;
	const int64_t now = now_ms();

	if (r < 0 || verb->is_stopping ||
	    (now < watch->due_ms &&
	     (!verb->deadline_ms || now < verb->deadline_ms)))
		return r;
	watch->due_ms = 0;
	if (verb->live.is_paused)
		return 0;
	if (!collect(watch))
		return show(watch) ? -ECANCELED : 0;
	verb->status = verb->is_stopping ? EXIT_FINE : EXIT_FAILED;
	return -ECANCELED;
}

static const struct verb_ops map_ops = {
	.start = start_watch,
	.prepare = find_wait,
	.dispatch = dispatch_watch,
};

/* @return whether to ask the service at the socket */
static bool choose_service(const struct map_options *wanted)
{
	return !wanted->netns && (wanted->socket || control_is_there(NULL));
}

/* @return an exit status */
static int mapping_watch(const struct map_options *wanted)
{
	struct watch watch = { .verb = { .ops = &map_ops,
					 .name = "map",
					 .verbose = wanted->verbose,
					 .duration_ms = wanted->duration_ms },
			       .options = wanted,
			       .query = { .sz = sizeof(watch.query) },
			       .has_service = choose_service(wanted) };
	char why[160];
	int status;

	if (wanted->tuple &&
	    netobs_mapping_query_parse(wanted->tuple, &watch.query, why,
				       sizeof(why))) {
		fprintf(stderr, "netobsctl map: lookup '%s': %s\n",
			wanted->tuple, why);
		return EXIT_USAGE;
	}
	watch.list.query = &watch.query;
	status = verb_run(&watch.verb);
	mapping_list_clear(&watch.list);
	return status;
}

/* ---- The words of the verb ----------------------------------------------------------- */

/* All words behind "lookup" are the tuple. */
static int look_up(struct map_options *wanted)
{
	const struct args_list *operands = &wanted->operands;
	char tuple[TUPLE_MAX + 1] = "";

	for (size_t i = 1; i < operands->n; i++)
		text_append(tuple, sizeof(tuple), "%s%s", *tuple ? " " : "",
			    operands->items[i]);
	if (strlen(tuple) == sizeof(tuple) - 1) {
		args_complain(&command, "lookup: a tuple has less than %d bytes",
			      TUPLE_MAX);
		return EXIT_USAGE;
	}
	wanted->tuple = tuple;
	wanted->once = true;
	return mapping_watch(wanted);
}

/* @return false: the words are wrong, which was printed */
static bool find_action(const struct map_options *wanted, enum action *ret_action)
{
	const struct args_list *operands = &wanted->operands;
	const char *word = operands->n ? operands->items[0] : "";

	*ret_action = wanted->once ? ONCE : LIVE;
	if (wanted->is_of_services) {
		*ret_action = operands->n ? SERVICES_OF_FILES : SERVICES;
	} else if (!strcmp(word, "annotate")) {
		*ret_action = ANNOTATE;
	} else if (operands->n > 1 && !strcmp(word, "lookup")) {
		*ret_action = LOOKUP;
	} else if (operands->n) {
		args_complain(&command,
			      "'%s': it is 'lookup TUPLE' or 'annotate [FILE...]'; "
			      "only --services takes files without a word",
			      word);
		return false;
	}
	return true;
}

static int run_map(struct map_options *wanted)
{
	enum action action;

	if (!find_action(wanted, &action) || !check_options(wanted, action) ||
	    !check_stdin(wanted, action))
		return EXIT_USAGE;
	switch (action) {
	case ANNOTATE:
		return annotate_files(wanted);
	case LOOKUP:
		return look_up(wanted);
	case SERVICES:
		return services_of_host(wanted);
	case SERVICES_OF_FILES:
		return services_of_files(wanted);
	default:
		return mapping_watch(wanted);
	}
}

int cmd_map(int argc, char **argv)
{
	struct map_options wanted = { .interval_ms = 1000 };
	int result = args_parse(&command, argc, argv, &wanted);

	if (result == ARGS_RUN)
		result = run_map(&wanted);
	args_list_clear(&wanted.operands);
	args_list_clear(&wanted.records);
	return result;
}
