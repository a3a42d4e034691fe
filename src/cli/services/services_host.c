/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The service map of what this host sees, live. */
#include "services.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <netobs/netobs.h>
#include <netobs/session.h>

#include "base/clock_ms.h"
#include "conversations.h"
#include "report.h"
#include "service/options/args.h"
#include "service/options/privileges.h"
#include "service/signals.h"
#include "cli/view/keys.h"
#include "cli/view/live.h"
#include "cli/view/text_table.h"
#include "services_view.h"

struct host_watch {
	const struct services_request *request;
	struct netobs *ctx;
	struct netobs_sessions *sessions; /* NULL: they cannot be observed */
	struct conversations *conversations;
	struct edges edges; /* since they were shown */
	int64_t since_ms; /* when that was, or the beginning; CLOCK_MONOTONIC */
	struct live live;
	bool error_logged, is_failed;
	volatile bool is_stopping;
};

static void stop_watch(void *object)
{
	struct host_watch *watch = object;

	watch->is_stopping = true;
	if (watch->ctx)
		netobs_stop(watch->ctx);
	if (watch->sessions)
		netobs_sessions_stop(watch->sessions);
}

static void fail(struct host_watch *watch, int err)
{
	if (!watch->is_failed)
		fprintf(stderr, "netobsctl map: %s\n", strerror(-err));
	watch->is_failed = true;
	stop_watch(watch);
}

/* ---- Reports --------------------------------------------------------------------------- */

static void add_report(struct host_watch *watch,
		       const struct service_report *report)
{
	const int r = conversations_add(watch->conversations, 0, report);

	if (r)
		fail(watch, r);
}

static void on_flow(const struct netobs_flow *flow, void *user)
{
	struct service_report report;

	report_of_flow(flow, &report);
	add_report(user, &report);
}

static void on_session(const struct netobs_session *session, void *user)
{
	struct service_report report;

	report_of_session(session, &report);
	add_report(user, &report);
}

static void on_log(int level, const char *message, void *user)
{
	struct host_watch *watch = user;

	watch->error_logged |=
		args_report_log("map", watch->request->verbose, level, message);
}

/* ---- Showing --------------------------------------------------------------------------- */

/* Rows beside the headings, the others and the total. */
static uint32_t find_rows(struct host_watch *watch)
{
	const struct services_request *request = watch->request;
	uint32_t rows;

	if (!watch->live.is_screen)
		return request->rows;
	live_begin(&watch->live, "services of this host", request->interval_ms);
	rows = text_table_room(request->rows, watch->live.rows);
	return rows > 2 ? rows - 1 : rows;
}

/* @return false: it failed */
static bool take(struct host_watch *watch)
{
	const int r = conversations_take(watch->conversations, &watch->edges);

	if (r)
		fail(watch, r);
	return !r;
}

static void show(struct host_watch *watch)
{
	struct services_view view = { .reporters = watch->conversations,
				      .has_sessions = watch->sessions,
				      .time_ms = clock_ms(CLOCK_REALTIME),
				      .duration_ms = now_ms() - watch->since_ms };
	services_view_make(&view, &watch->edges, find_rows(watch));
	if (services_show(watch->request, &view, watch->live.columns)) {
		watch->is_failed = true;
		stop_watch(watch);
	}
	if (ferror(stdout))
		stop_watch(watch);
	edges_clear(&watch->edges);
	watch->since_ms = now_ms();
}

/*
 * A graph is of all the time; a table of an interval, which drains may divide. Conversations are taken
 * once for each map that counts them: those of two drains would be two.
 */
static void on_interval(void *user)
{
	struct host_watch *watch = user;
	const struct services_request *request = watch->request;
	const int64_t passed_ms = now_ms() - watch->since_ms;
	const bool is_due = passed_ms >= request->interval_ms * 3 / 4;
	const bool is_graph = request->format == SERVICES_DOT;

	if (watch->is_stopping || watch->live.is_paused ||
	    (!is_due && (request->once || !is_graph)))
		return;
	if (request->once) {
		stop_watch(watch);
		return;
	}
	if (take(watch) && !is_graph)
		show(watch);
}

/* ---- The run --------------------------------------------------------------------------- */

/* @return 0; < 0 */
static int start_context(struct host_watch *watch, uint64_t flags)
{
	NETOBS_OPTS(netobs_opts, opts, .flags = flags,
		    .interval_ms = watch->request->interval_ms,
		    .container_root = watch->request->container_root, .rtt = 1,
		    .on_flow = on_flow, .on_interval = on_interval,
		    .on_log = on_log, .user = watch);
	int r = netobs_new(&opts, &watch->ctx);

	if (r)
		return r;
	r = netobs_start(watch->ctx);
	if (r == -ENOTSUP && flags & NETOBS_NAT) {
		netobs_free(watch->ctx);
		watch->ctx = NULL;
		watch->error_logged = false;
		return start_context(watch, flags & ~(uint64_t)NETOBS_NAT);
	}
	return r;
}

/* Without sessions, connections and errors are not known, which a line on stderr says. */
static void report_no_sessions(const char *why)
{
	fprintf(stderr,
		"netobsctl map: connections and errors are not known: %s\n", why);
}

static void start_sessions(struct host_watch *watch)
{
	char why[NETOBS_ERROR_MAX] = "";
	NETOBS_OPTS(netobs_sessions_opts, opts, .on_session = on_session,
		    .error = &why, .user = watch);
	const bool has_names = watch->request->container_names;
	struct netobs_sessions *sessions;
	int r = netobs_sessions_new(&opts, &sessions);

	if (r) {
		report_no_sessions(*why ? why : strerror(-r));
		return;
	}
	if (has_names)
		r = netobs_sessions_share(sessions, watch->ctx);
	r = r ?: netobs_sessions_start(sessions);
	if (!r) {
		watch->sessions = sessions;
		return;
	}
	report_no_sessions(netobs_sessions_last_error(sessions));
	netobs_sessions_free(sessions);
}

static int next_pause(const struct host_watch *watch, int64_t end_ms)
{
	return watch->is_stopping ? 100 : until_ms(end_ms);
}

/* Run until both observers have stopped. @return 0; < 0 */
static int loop(struct host_watch *watch)
{
	const uint32_t duration_ms = watch->request->duration_ms;
	const int64_t end_ms = duration_ms ? now_ms() + duration_ms : 0;
	bool has_sessions = watch->sessions, has_flows = true;

	while (has_flows || has_sessions) {
		struct pollfd fds[] = {
			{ .fd = has_flows ? netobs_fd(watch->ctx) : -1,
			  .events = POLLIN },
			{ .fd = has_sessions ?
					netobs_sessions_fd(watch->sessions) :
					-1,
			  .events = POLLIN },
			{ .fd = watch->is_stopping ? -1 : keys_fd(),
			  .events = POLLIN },
		};
		int r;

		poll(fds, ARRAY_SIZE(fds), next_pause(watch, end_ms));
		if (fds[2].revents && !live_take_keys(&watch->live))
			stop_watch(watch);
		if (end_ms && now_ms() >= end_ms && !watch->is_stopping)
			stop_watch(watch);
		/* Sessions first: an interval has those that ended in it. */
		r = has_sessions ? netobs_sessions_dispatch(watch->sessions) : 0;
		has_sessions &= r != -ECANCELED;
		if (r >= 0 || r == -ECANCELED || r == -EINTR)
			r = has_flows ? netobs_dispatch(watch->ctx) : 0;
		has_flows &= r != -ECANCELED;
		if (r < 0 && r != -ECANCELED && r != -EINTR)
			return r;
	}
	return 0;
}

static int finish(struct host_watch *watch)
{
	take(watch);
	if (!watch->is_failed && (watch->edges.n || watch->request->once ||
				  watch->request->format == SERVICES_DOT))
		show(watch);
	return watch->is_failed ? EXIT_FAILED : EXIT_FINE;
}

static int observe(struct host_watch *watch)
{
	const struct args_list none = { 0 };
	const uint64_t names = watch->request->container_names ?
				       NETOBS_PROCESSES | NETOBS_CONTAINER_NAMES :
				       0;
	int r = start_context(watch, NETOBS_NAT | names);

	if (r < 0) {
		args_report_failure("map", watch->error_logged, "start", r);
		return watch->ctx ? EXIT_FAILED : args_refusal_status(r);
	}
	start_sessions(watch);
	privileges_drop(&none, KEEP_FILES | KEEP_PROGRAMS | KEEP_PROCESSES);
	watch->since_ms = now_ms();
	if (watch->is_stopping) /* a signal came before there was an observer */
		stop_watch(watch);
	live_start(&watch->live, watch->request->format == SERVICES_TABLE &&
					 !watch->request->once);
	if (watch->live.is_screen)
		show(watch); /* the headings */
	r = loop(watch);
	if (r < 0) {
		args_report_failure("map", watch->error_logged, "continue", r);
		r = EXIT_FAILED;
	} else {
		r = finish(watch);
	}
	live_end();
	return r;
}

int services_of_host(const struct services_request *request)
{
	struct host_watch watch = { .request = request,
				    .conversations = conversations_new(),
				    .edges = { .max = EDGES_MAX } };
	uint32_t reporter;
	int status = EXIT_FAILED;

	if (!watch.conversations ||
	    conversations_reporter(watch.conversations, "this host",
				   "this host", &reporter)) {
		fprintf(stderr, "netobsctl map: %s\n", strerror(ENOMEM));
	} else {
		signals_catch(stop_watch, &watch);
		status = observe(&watch);
		signals_release();
	}
	netobs_sessions_free(watch.sessions);
	netobs_free(watch.ctx);
	edges_free(&watch.edges);
	conversations_free(watch.conversations);
	return status;
}
