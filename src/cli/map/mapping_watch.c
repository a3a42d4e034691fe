/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "mapping_watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <netobs/netobs.h>

#include "base/clock_ms.h"
#include "cli/client/control_request.h"
#include "cli/client/mapping_list.h"
#include "cli/services/services_view.h"
#include "cli/view/print.h"
#include "cli/view/verb_run.h"
#include "service/options/privileges.h"

/* The source of mappings. */
struct watch {
	struct verb verb;
	const struct map_options *options;
	struct netobs_mapping_query query; /* options->tuple, parsed */
	bool has_service;
	struct netobs *ctx; /* NULL: the kernel is asked, or the service */
	struct mapping_list list;
	int64_t due_ms; /* when the table is shown next; 0: not known yet */
};

static bool is_json(const struct watch *watch)
{
	return watch->options->output == SERVICES_JSON;
}

/* ---- Sources ---------------------------------------------------------------------- */

static void take_match(const struct netobs_mapping *mapping, void *user)
{
	struct watch *watch = user;

	if (netobs_mapping_matches(mapping, &watch->query))
		mapping_list_add(mapping, &watch->list);
}

static int collect_of_context(struct watch *watch)
{
	uint64_t cursor = 0;
	int r;

	while ((r = netobs_mappings(watch->ctx, &cursor, take_match, watch)) > 0)
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
				     watch->options->tuple, &watch->query,
				     &watch->has_service);
	else
		r = watch->ctx ? collect_of_context(watch) :
				 mapping_list_kernel(&watch->list,
						     watch->options->netns,
						     &watch->query);
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

static void ignore_flow(const struct netobs_flow *flow, void *user)
{
	(void)flow;
	(void)user;
}

/* @return 0; 1: a signal came before there was a context; < 0: it failed, which was reported */
static int observe(struct watch *watch)
{
	struct verb *verb = &watch->verb;
	NETOBS_OPTS(netobs_opts, opts, .flags = NETOBS_NAT,
		    .interval_ms = watch->options->interval_ms,
		    .on_flow = ignore_flow, .on_log = verb_log, .user = watch);
	const struct args_list none = { 0 };
	int r = netobs_new(&opts, &watch->ctx);

	if (r < 0)
		verb->status = args_refusal_status(r);
	else if (verb->is_stopping)
		return 1;
	r = r ?: netobs_start(watch->ctx);
	if (r < 0)
		return verb_fail(verb, "start", r);
	verb->fds[verb->n_fds++] = netobs_fd(watch->ctx);
	privileges_drop(&none, KEEP_FILES | KEEP_PROGRAMS | KEEP_PROCESSES);
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
		return watch->ctx ? -1 : 0;
	if (!watch->due_ms)
		watch->due_ms = now_ms() + watch->options->interval_ms;
	return left_ms(watch->due_ms);
}

/* Show the table at the end of an interval, or of it all. */
static int dispatch_watch(void *object)
{
	struct watch *watch = object;
	struct verb *verb = &watch->verb;
	const int r = watch->ctx	? netobs_dispatch(watch->ctx) :
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

static void stop_watch(void *object)
{
	netobs_stop(((struct watch *)object)->ctx);
}

static const struct verb_ops map_ops = {
	.start = start_watch,
	.prepare = find_wait,
	.dispatch = dispatch_watch,
	.stop = stop_watch,
};

/* @return whether to ask the service at the socket */
static bool choose_service(const struct map_options *options)
{
	return !options->netns && (options->socket || control_is_there(NULL));
}

int mapping_watch(const struct map_options *options)
{
	struct watch watch = { .verb = { .ops = &map_ops,
					 .name = "map",
					 .verbose = options->verbose,
					 .duration_ms = options->duration_ms },
			       .options = options,
			       .query = { .sz = sizeof(watch.query) },
			       .has_service = choose_service(options) };
	char why[160];
	int status;

	if (options->tuple &&
	    netobs_mapping_query_parse(options->tuple, &watch.query, why,
				       sizeof(why))) {
		fprintf(stderr, "netobsctl map: lookup '%s': %s\n",
			options->tuple, why);
		return EXIT_USAGE;
	}
	status = verb_run(&watch.verb);
	netobs_free(watch.ctx);
	mapping_list_clear(&watch.list);
	return status;
}
