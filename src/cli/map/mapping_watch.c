/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "mapping_watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <netobs/netobs.h>

#include "base/clock_ms.h"
#include "base/util.h"
#include "cli/client/control_request.h"
#include "cli/client/mapping_list.h"
#include "service/options/args.h"
#include "service/options/privileges.h"
#include "cli/view/keys.h"
#include "cli/view/live.h"
#include "cli/view/text_table.h"
#include "service/signals.h"

/* The source of mappings. */
struct watch {
	const struct mapping_request *request;
	struct netobs_mapping_query query; /* request->tuple, parsed */
	bool has_service;
	struct netobs *ctx; /* NULL: the kernel is asked, or the service */
	bool error_logged;
	struct mapping_list list;
	struct live live;
	volatile bool is_stopping;
};

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
		r = mapping_list_ask(&watch->list, watch->request->socket,
				     watch->request->tuple, &watch->query,
				     &watch->has_service);
	else
		r = watch->ctx ? collect_of_context(watch) :
				 mapping_list_kernel(&watch->list,
						     watch->request->netns,
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
	if (!watch->request->once)
		live_begin(&watch->live, "translations by NAT",
			   watch->request->interval_ms);
	mapping_list_print_table(&watch->list,
				 text_table_room(watch->request->rows,
						 watch->live.rows),
				 watch->live.columns);
	if (watch->live.is_screen && !watch->list.n)
		puts("No connection is translated now.");
}

/* @return EXIT_FINE; EXIT_FAILED: it could not be written, which was reported */
static int show(struct watch *watch)
{
	int r;

	if (watch->request->is_json)
		mapping_list_print_json(&watch->list, watch->request->rows);
	else
		show_table(watch);
	r = text_flush("map");
	return !r || r == -EPIPE ? EXIT_FINE : EXIT_FAILED;
}

/* ---- Runs ------------------------------------------------------------------------- */

static int show_once(struct watch *watch)
{
	const char *tuple = watch->request->tuple;

	if (collect(watch))
		return EXIT_FAILED;
	if (tuple && !watch->list.n) {
		fprintf(stderr, "netobsctl map: no mapping has %s%s\n", tuple,
			watch->has_service ?
				"" :
				" now; those that have ended are known to a service with "
				"'nat = yes'");
		return EXIT_FAILED;
	}
	return show(watch);
}

static void stop_watch(void *object)
{
	struct watch *watch = object;

	if (watch->ctx && !watch->is_stopping)
		netobs_stop(watch->ctx);
	watch->is_stopping = true;
}

/* Until it has stopped, or for @ms. @return 0; < 0 */
static int wait_for(struct watch *watch, int64_t ms)
{
	const int64_t end_ms = now_ms() + ms;
	struct pollfd fds[] = {
		{ .fd = watch->ctx ? netobs_fd(watch->ctx) : -1,
		  .events = POLLIN },
		{ .events = POLLIN }, /* keys */
	};
	int r = 0;

	while ((watch->ctx || !watch->is_stopping) && r >= 0 &&
	       now_ms() < end_ms) {
		fds[1].fd = keys_fd();
		if (poll(fds, ARRAY_SIZE(fds), left_ms(end_ms)) > 0 &&
		    fds[1].revents && !live_take_keys(&watch->live))
			stop_watch(watch);
		r = watch->ctx ? netobs_dispatch(watch->ctx) : 0;
		if (r == -EINTR)
			r = 0;
	}
	return r < 0 ? r : 0;
}

/* @return the time until the table is shown: at the end of an interval, or of it all */
static int64_t find_pause(const struct watch *watch, int64_t end_ms)
{
	const int64_t interval_ms = watch->request->interval_ms;
	const int64_t left = end_ms - now_ms();

	return left < interval_ms && !watch->is_stopping ? left : interval_ms;
}

static int show_repeatedly(struct watch *watch)
{
	const uint32_t duration_ms = watch->request->duration_ms;
	const int64_t end_ms = duration_ms ? now_ms() + duration_ms : INT64_MAX;
	int r;

	live_start(&watch->live, !watch->request->is_json);
	if (watch->live.is_screen)
		show(watch); /* the headings */
	else
		live_say("map", "waiting for translations by NAT");
	for (;;) {
		r = wait_for(watch, find_pause(watch, end_ms));
		if (r == -ECANCELED || (!watch->ctx && watch->is_stopping))
			return EXIT_FINE;
		if (r < 0) {
			args_report_failure("map", watch->error_logged,
					    "continue", r);
			return EXIT_FAILED;
		}
		if (!watch->is_stopping && !watch->live.is_paused &&
		    (collect(watch) || show(watch)))
			return watch->is_stopping ? EXIT_FINE : EXIT_FAILED;
		if (ferror(stdout) || now_ms() >= end_ms)
			stop_watch(watch);
	}
}

static void on_log(int level, const char *message, void *user)
{
	struct watch *watch = user;

	watch->error_logged |=
		args_report_log("map", watch->request->verbose, level, message);
}

static void ignore_flow(const struct netobs_flow *flow, void *user)
{
	(void)flow;
	(void)user;
}

static int observe(struct watch *watch)
{
	NETOBS_OPTS(netobs_opts, opts, .flags = NETOBS_NAT,
		    .interval_ms = watch->request->interval_ms,
		    .on_flow = ignore_flow, .on_log = on_log, .user = watch);
	const struct args_list none = { 0 };
	int r = netobs_new(&opts, &watch->ctx);
	int status = r ? args_refusal_status(r) : EXIT_FAILED;

	/* A signal that came before there was a context has stopped nothing. */
	if (!r && watch->is_stopping)
		status = EXIT_FINE;
	else
		r = r ?: netobs_start(watch->ctx);
	if (r < 0) {
		args_report_failure("map", watch->error_logged, "start", r);
	} else if (status != EXIT_FINE) {
		privileges_drop(&none,
				KEEP_FILES | KEEP_PROGRAMS | KEEP_PROCESSES);
		status = show_repeatedly(watch);
	}
	signals_release();
	netobs_free(watch->ctx);
	return status;
}

/* @return whether to ask the service at the socket */
static bool choose_service(const struct mapping_request *request)
{
	return !request->netns && (request->socket || control_is_there(NULL));
}

int mapping_watch(const struct mapping_request *request)
{
	struct watch watch = { .request = request,
			       .query = { .sz = sizeof(watch.query) },
			       .has_service = choose_service(request) };
	char why[160];
	int status;

	if (request->tuple &&
	    netobs_mapping_query_parse(request->tuple, &watch.query, why,
				       sizeof(why))) {
		fprintf(stderr, "netobsctl map: lookup '%s': %s\n",
			request->tuple, why);
		return EXIT_USAGE;
	}
	signals_catch(stop_watch, &watch);
	if (request->once)
		status = show_once(&watch);
	else if (watch.has_service || request->netns)
		status = show_repeatedly(&watch);
	else
		status = observe(&watch);
	live_end();
	signals_release();
	mapping_list_clear(&watch.list);
	return status;
}
