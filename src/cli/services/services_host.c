/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The service map of what this host sees, live. */
#include "services_view.h"

#include "base/clock_ms.h"
#include "base/util.h"
#include "cli/annotate/record_input.h"
#include "cli/view/verb_run.h"
#include "service/options/args.h"
#include "service/options/privileges.h"

#include <errno.h>
#include <inttypes.h>
#include <netobs/netobs.h>
#include <netobs/session.h>
#include <stdio.h>
#include <string.h>

enum { FD_FLOWS, FD_SESSIONS };

struct host_watch {
	struct verb verb;
	const struct map_options *options;
	struct netobs *ctx;
	struct netobs *sessions;	  /* NULL: they cannot be observed */
	struct netobs_services *services; /* edges since they were shown */
	int64_t since_ms; /* when that was, or the beginning; CLOCK_MONOTONIC */
};

static void stop_watch(void *object)
{
	struct host_watch *watch = object;

	netobs_stop(watch->ctx);
	netobs_stop(watch->sessions);
}

static void fail(struct host_watch *watch, int err)
{
	if (!watch->verb.status)
		fprintf(stderr, "netobsctl map: %s\n", strerror(-err));
	watch->verb.status = EXIT_FAILED;
	verb_stop(&watch->verb);
}

/* ---- Reports --------------------------------------------------------------------------- */

static void on_record(const struct netobs_record *record, void *user)
{
	struct host_watch *watch = user;
	const int r = netobs_services_add(watch->services, NULL, record);

	if (r)
		fail(watch, r);
}

/* ---- Showing --------------------------------------------------------------------------- */

/* Rows beside the headings, the others and the total. */
static uint32_t find_rows(struct host_watch *watch)
{
	const struct map_options *options = watch->options;
	uint32_t rows;

	if (!watch->verb.live.is_screen)
		return options->rows;
	live_begin(&watch->verb.live, "services of this host",
		   options->interval_ms);
	rows = live_room(&watch->verb.live, options->rows);
	return rows > 2 ? rows - 1 : rows;
}

static void show(struct host_watch *watch)
{
	const struct services_view view = { .services = watch->services,
					    .time_ms = clock_ms(CLOCK_REALTIME),
					    .duration_ms = now_ms() -
							   watch->since_ms };
	const int r = netobs_services_rows(watch->services, find_rows(watch));

	if (r < 0) {
		fail(watch, r);
		return;
	}
	if (services_show(watch->options, &view, watch->verb.live.columns))
		watch->verb.status = EXIT_FAILED;
	if (watch->verb.status || ferror(stdout))
		verb_stop(&watch->verb);
	netobs_services_clear(watch->services);
	watch->since_ms = now_ms();
}

/*
 * A table is of an interval, which drains may divide. Conversations are taken once for each map that
 * counts them: those of two drains would be two.
 */
static void on_interval(void *user)
{
	struct host_watch *watch = user;
	const struct map_options *options = watch->options;
	const int64_t passed_ms = now_ms() - watch->since_ms;

	if (watch->verb.is_stopping || watch->verb.live.is_paused ||
	    passed_ms < options->interval_ms * 3 / 4)
		return;
	if (options->once)
		verb_stop(&watch->verb);
	else
		show(watch);
}

/* ---- The run --------------------------------------------------------------------------- */

/* @return 0; < 0 */
static int start_context(struct host_watch *watch, uint64_t flags)
{
	NETOBS_OPTS(netobs_opts, opts, .flags = flags,
		    .interval_ms = watch->options->interval_ms,
		    .container_root = watch->options->container_root, .rtt = 1,
		    .on_record = on_record, .on_interval = on_interval,
		    .on_log = verb_log, .user = watch);
	int r = netobs_new(&opts, &watch->ctx);

	if (r)
		return r;
	r = netobs_start(watch->ctx);
	if (r == -ENOTSUP && flags & NETOBS_NAT) {
		netobs_free(watch->ctx);
		watch->ctx = NULL;
		watch->verb.error_logged = false;
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
	NETOBS_OPTS(netobs_sessions_opts, opts, .on_record = on_record,
		    .error = &why, .user = watch);
	const bool has_names = watch->options->container_names;
	struct netobs *sessions;
	int r = netobs_sessions_new(&opts, &sessions);

	if (r) {
		report_no_sessions(*why ? why : strerror(-r));
		return;
	}
	if (has_names)
		r = netobs_sessions_share(sessions, watch->ctx);
	r = r ?: netobs_start(sessions);
	if (!r) {
		watch->sessions = sessions;
		return;
	}
	report_no_sessions(netobs_last_error(sessions));
	netobs_free(sessions);
}

static int start_host(void *object)
{
	struct host_watch *watch = object;
	struct verb *verb = &watch->verb;
	NETOBS_OPTS(netobs_services_opts, opts, .max_edges = 0);
	const uint64_t names = watch->options->container_names ?
				       NETOBS_PROCESSES | NETOBS_CONTAINER_NAMES :
				       0;
	int r = start_context(watch, NETOBS_NAT | names);

	if (r < 0) {
		verb->status = watch->ctx ? EXIT_FAILED : args_refusal_status(r);
		return verb_fail(verb, "start", r);
	}
	start_sessions(watch);
	opts.has_sessions = watch->sessions != NULL;
	r = netobs_services_new(&opts, &watch->services);
	if (r < 0)
		return verb_fail(verb, "start", r);
	privileges_drop(NULL, KEEP_FILES | KEEP_PROGRAMS | KEEP_PROCESSES);
	verb->fds[FD_FLOWS] = netobs_fd(watch->ctx);
	verb->fds[FD_SESSIONS] = watch->sessions ? netobs_fd(watch->sessions) :
						   -1;
	verb->n_fds = 2;
	watch->since_ms = now_ms();
	live_start(&verb->live, watch->options->output == SERVICES_TABLE &&
					!watch->options->once);
	if (verb->live.is_screen)
		show(watch); /* the headings */
	return 0;
}

static int find_wait(void *object)
{
	return ((const struct host_watch *)object)->verb.is_stopping ? 100 : -1;
}

/* @ret_fd: set to -1 once the observer has stopped. @return 0; < 0: it failed */
static int check_result(int r, int *ret_fd)
{
	if (r == -ECANCELED)
		*ret_fd = -1;
	return r == -ECANCELED || r == -EINTR || r > 0 ? 0 : r;
}

/* Sessions first: an interval has those that ended in it. */
static int dispatch_host(void *object)
{
	struct host_watch *watch = object;
	int *fds = watch->verb.fds, r = 0;

	if (fds[FD_SESSIONS] >= 0)
		r = check_result(netobs_dispatch(watch->sessions),
				 &fds[FD_SESSIONS]);
	if (!r && fds[FD_FLOWS] >= 0)
		r = check_result(netobs_dispatch(watch->ctx), &fds[FD_FLOWS]);
	return r ?: fds[FD_SESSIONS] < 0 && fds[FD_FLOWS] < 0 ? -ECANCELED : 0;
}

static int finish_host(void *object, int r)
{
	struct host_watch *watch = object;
	int n;

	if (r < 0 || watch->verb.status)
		return r;
	n = netobs_services_rows(watch->services, 0);
	if (n < 0)
		fail(watch, n);
	else if (n > 1 || watch->options->once)
		show(watch);
	return r;
}

static const struct verb_ops host_ops = {
	.start = start_host,
	.prepare = find_wait,
	.dispatch = dispatch_host,
	.stop = stop_watch,
	.finish = finish_host,
};

int services_of_host(const struct map_options *options)
{
	struct host_watch watch = {
		.verb = { .ops = &host_ops,
			  .name = "map",
			  .verbose = options->verbose,
			  .duration_ms = options->duration_ms },
		.options = options,
	};
	const int status = verb_run(&watch.verb);

	netobs_free(watch.sessions);
	netobs_free(watch.ctx);
	netobs_services_free(watch.services);
	return status;
}

/* ---- Files --------------------------------------------------------------------------- */

/* The service map of records of any number of hosts, as lines of JSON. */

struct reading {
	const struct map_options *options;
	struct netobs_services *services;
	struct record_reader reader;
};

/* Records that name no host count as those of one host for each file: by the end of a long path. */
static const char *find_host(const char *path)
{
	const size_t len = strlen(path);

	if (!strcmp(path, "-"))
		return "standard input";
	return path + (len < NETOBS_SERVICES_HOST_MAX ?
			       0 :
			       len - NETOBS_SERVICES_HOST_MAX + 1);
}

/* @return 0; -ENOMEM, which was reported */
static int take_record(const struct record_input *input, const char *line,
		       void *user)
{
	struct reading *reading = user;
	char why[NETOBS_ERROR_MAX];
	const int r = netobs_services_add_json(reading->services,
					       find_host(input->path), line,
					       why, sizeof(why));

	if (r == -EINVAL)
		record_reader_refuse(&reading->reader, input, why);
	else if (r < 0)
		record_reader_complain("%s", strerror(-r));
	return r < 0 && r != -EINVAL ? r : 0;
}

static void print_summary(const struct reading *reading,
			  const struct netobs_services_stats *stats)
{
	const struct {
		uint64_t n;
		const char *what;
	} more[] = {
		{ stats->repeated_records, "lines came again" },
		{ stats->repeated_packets,
		  "packets were reported by several hosts, and count once" },
		{ stats->shared_packets,
		  "packets have tuples that a NAT used for several conversations, and "
		  "count only at the NAT" },
		{ stats->sampled,
		  "flows are sampled: of these, the counted packets are shown" },
		{ stats->other_records, "records of other types" },
		{ reading->reader.unreadable, "lines are no records" },
	};

	fprintf(stderr,
		"netobsctl map: %" PRIu64 " records of %" PRIu64
		" hosts: %" PRIu64 " flows, %" PRIu64 " sessions",
		stats->records, stats->hosts, stats->flows, stats->sessions);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		if (more[i].n)
			fprintf(stderr, "; %" PRIu64 " %s", more[i].n,
				more[i].what);
	if (stats->unchecked_records)
		fprintf(stderr,
			"; after the first %d lines, repeated lines count again",
			NETOBS_SERVICES_LINES_MAX);
	fputc('\n', stderr);
}

static int show_files(struct reading *reading)
{
	struct netobs_services_stats stats = { .sz = sizeof(stats) };
	struct services_view view = { .services = reading->services };
	const int found =
		netobs_services_rows(reading->services, reading->options->rows);
	int r;

	netobs_services_stats_get(reading->services, &stats);
	view.time_ms = stats.end_ms;
	view.duration_ms = stats.end_ms - stats.start_ms;
	r = services_show(reading->options, &view, 0) ?: min_i64(found, 0);
	print_summary(reading, &stats);
	return r;
}

int services_of_files(const struct map_options *options)
{
	struct reading reading = { .options = options };
	int r = netobs_services_new(NULL, &reading.services);

	if (r)
		record_reader_complain("%s", strerror(-r));
	/* A file that cannot be read, or not as a whole, leaves the others. */
	for (size_t i = 0; r != -ENOMEM && i < options->operands.n; i++)
		r = record_reader_read(&reading.reader,
				       options->operands.items[i], take_record,
				       &reading);
	if (r != -ENOMEM && show_files(&reading))
		reading.reader.is_failed = true;
	netobs_services_free(reading.services);
	return r == -ENOMEM || reading.reader.is_failed ? EXIT_FAILED : EXIT_FINE;
}
