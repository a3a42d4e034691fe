/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service_trace.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock_ms.h"
#include "base/log.h"
#include "base/util.h"
#include "base/worker.h"

enum {
	IDLE_MS = 5000, /* before an idle tracer is freed: to load its programs takes long */
	RETRY_FIRST_MS = 60000,
	RETRY_MOST_MS = 3600000,
	LOOK_MS = 500, /* between looks whether it is idle, which take a while */
};

/* ---- Loading --------------------------------------------------------------------------- */

/* A tracer and the state of its callbacks: of the thread that loads it, until it is taken. */
struct trace_work {
	struct netobs_trace_opts opts;
	struct netobs *tracer;
	int result;
	struct log_lines lines;	     /* kept until then: only one thread logs */
	struct service_trace *trace; /* NULL until then */
};

/* Each tracer warns of the same, as it starts and as it runs. */
static void log_message(int level, const char *message, void *user)
{
	struct service_trace *trace = user;
	bool *has_warned = trace->tracer ? &trace->has_warned :
					   &trace->has_started;

	if (level == NETOBS_LOG_WARNING && *has_warned)
		level = NETOBS_LOG_DEBUG;
	else if (level == NETOBS_LOG_WARNING && trace->tracer)
		trace->has_warned = true;
	trace->on_log(level, message, trace->user);
}

static void on_trace_record(const struct netobs_record *record, void *user)
{
	const struct trace_work *work = user;

	diagnoses_record(&work->trace->diagnoses, record);
	work->trace->on_record(record, work->trace->user);
}

static void on_trace_log(int level, const char *message, void *user)
{
	struct trace_work *work = user;
	const struct log kept = log_lines_log(&work->lines);

	if (work->trace)
		log_message(level, message, work->trace);
	else
		log_write(&kept, level, "%s", message);
}

static void load_tracer(void *arg)
{
	struct trace_work *work = arg;

	work->result = netobs_trace_new(&work->opts, &work->tracer) ?:
			       netobs_start(work->tracer);
}

static void free_trace_work(void *arg)
{
	struct trace_work *work = arg;

	netobs_free(work->tracer);
	log_lines_done(&work->lines);
	free(work);
}

static bool is_loading(const struct service_trace *trace)
{
	return trace->worker && worker_is_busy(trace->worker);
}

/* Load a tracer on a thread: that takes most of a second, in which the service continues. */
static int begin_tracer(struct service_trace *trace)
{
	struct trace_work *work;
	int err = 0;

	if (!trace->worker)
		err = worker_new(load_tracer, free_trace_work, &trace->worker);
	if (err || is_loading(trace))
		return err;
	work = calloc(1, sizeof(*work));
	if (!work)
		return -ENOMEM;
	work->opts = trace->opts;
	work->opts.sz = sizeof(work->opts);
	work->opts.only_armed = 1;
	work->opts.records = 1 << NETOBS_RECORD_JOURNEY |
			     (uint64_t)trace->wants_events << NETOBS_RECORD_TRACE;
	if (trace->diagnoses.config.is_enabled)
		work->opts.records |= 1 << NETOBS_RECORD_TURN |
				      1 << NETOBS_RECORD_QUEUE |
				      1 << NETOBS_RECORD_HOST;
	work->opts.on_record = on_trace_record;
	work->opts.on_log = on_trace_log;
	work->opts.user = work;
	free(TAKE_PTR(trace->work));
	worker_start_or_run(trace->worker, work);
	trace->is_stale = false;
	return 0;
}

/* ---- The tracer ------------------------------------------------------------------------ */

struct trace_totals service_trace_totals(const struct service_trace *trace)
{
	struct netobs_trace_stats stats = { .sz = sizeof(stats) };
	struct trace_totals totals = trace->past;

	totals.diagnoses = trace->diagnoses.totals;
	if (!trace->tracer)
		return totals;
	netobs_trace_stats_get(trace->tracer, &stats);
	totals.connections = stats.current_connections;
	totals.journeys += stats.journeys;
	totals.complete_journeys += stats.complete_journeys;
	totals.events += stats.events;
	totals.cut_by_connection += stats.cut_by_connection;
	totals.cut_by_rate += stats.cut_by_rate;
	totals.lost_events += stats.lost_events;
	return totals;
}

static void free_tracer(struct service_trace *trace)
{
	trace->past = service_trace_totals(trace);
	trace->past.connections = 0;
	netobs_free(TAKE_PTR(trace->tracer));
	trace->is_leaving = false;
}

static void report_trace_failure(struct service_trace *trace, const char *doing,
				 int err)
{
	char text[NETOBS_ERROR_MAX + 128];

	trace->retry.first_ms = RETRY_FIRST_MS;
	trace->retry.most_ms = RETRY_MOST_MS;
	backoff_wait(&trace->retry, now_ms());
	snprintf(text, sizeof(text),
		 "alerts are not traced for %d s: the tracer cannot %s: %s",
		 backoff_left_ms(&trace->retry) / 1000, doing, strerror(-err));
	trace->on_log(NETOBS_LOG_ERROR, text, trace->user);
}

/* ---- Alerts ---------------------------------------------------------------------------- */

/* @return for how long its connection is to be traced, in ms; 0: it is not */
static uint32_t find_time(const struct service_trace *trace,
			  const struct netobs_alert *alert)
{
	const struct diagnoses *all = &trace->diagnoses;
	uint64_t ms = diagnoses_find(all, alert) ? 2 * all->config.for_ms : 0;

	for (size_t i = 0; i < trace->n_rules; i++)
		if (!strncmp(trace->rules[i].name, alert->name,
			     sizeof(alert->name)))
			ms = max_u64(ms, trace->rules[i].duration_ms);
	return (uint32_t)ms;
}

int service_trace_arm(struct netobs *tracer, const struct netobs_alert *alert,
		      uint32_t duration_ms)
{
	struct netobs_trace_target target = {
		.sz = sizeof(target),
		.client_port = alert->client_port,
		.server_port = alert->server_port,
		.duration_ms = duration_ms,
		.alert_ns = alert->record.time_ns,
		.alert = alert->name,
	};

	memcpy(target.client, alert->client, sizeof(target.client));
	memcpy(target.server, alert->server, sizeof(target.server));
	return netobs_trace_arm(tracer, &target);
}

/* It is no error if there are too many connections, or if the connection has just been armed. */
static void arm_alert(struct service_trace *trace,
		      const struct netobs_alert *alert)
{
	const uint32_t ms = find_time(trace, alert);
	int err = ms ? service_trace_arm(trace->tracer, alert, ms) :
		       -ENOENT; /* a reload took it away */

	if (err && err != -ENOSPC && err != -EEXIST && err != -ENOENT)
		report_trace_failure(trace, "trace", err);
	else if (!err)
		backoff_reset(&trace->retry);
	trace->past.armed += !err;
	trace->past.refused += err != 0;
	trace->idle_at_ms = now_ms() + IDLE_MS;
}

static void wait_for_tracer(struct service_trace *trace,
			    const struct netobs_alert *alert)
{
	const bool has_room = trace->n_waiting < TRACE_WAITING_MAX &&
			      array_reserve(&trace->waiting, trace->n_waiting,
					    &trace->waiting_capacity,
					    sizeof(*trace->waiting), 16);
	int err = has_room ? begin_tracer(trace) : -ENOSPC;

	if (!err)
		trace->waiting[trace->n_waiting++] = *alert;
	else if (err != -ENOSPC)
		report_trace_failure(trace, "start", err);
	trace->past.refused += err != 0;
}

void service_trace_alert(struct service_trace *trace,
			 const struct netobs_alert *alert)
{
	diagnoses_alert(&trace->diagnoses, alert);
	if (!find_time(trace, alert))
		return;
	if (alert->protocol != IPPROTO_TCP || /* a flow without a connection */
	    trace->is_leaving || trace->is_stopped ||
	    !backoff_is_due(&trace->retry))
		trace->past.refused++;
	else if (trace->tracer)
		arm_alert(trace, alert);
	else
		wait_for_tracer(trace, alert);
}

/* Take the tracer once it is loaded, or has failed to load. */
static void take_tracer(struct service_trace *trace)
{
	const struct log log = { .write = log_message, .user = trace };
	struct trace_work *work = worker_take(trace->worker);
	int err;

	if (!work)
		return;
	err = work->result;
	log_lines_pass_on(&work->lines, &log);
	if (err) {
		free_trace_work(work);
		report_trace_failure(trace, "start", err);
		trace->past.refused += trace->n_waiting;
	} else {
		work->trace = trace;
		trace->work = work;
		trace->tracer = work->tracer;
		backoff_reset(&trace->retry);
	}
	trace->has_started |= !err;
	trace->idle_at_ms = now_ms() + IDLE_MS;
	for (uint32_t i = 0; !err && i < trace->n_waiting; i++)
		arm_alert(trace, &trace->waiting[i]);
	trace->n_waiting = 0;
}

/* ---- Its life -------------------------------------------------------------------------- */

static bool wants_trace_events(const struct service_config *config)
{
	for (size_t i = 0; i < config->n_sinks; i++)
		if (output_spec_takes(config->sinks[i].text, "trace"))
			return true;
	return false;
}

void service_trace_commit(struct service_trace *trace,
			  struct service_config *config)
{
	const bool wanted_events = trace->wants_events;

	trace->wants_events = wants_trace_events(config);
	diagnoses_commit(&trace->diagnoses, &config->diagnose);
	backoff_reset(&trace->retry);
	trace->is_stale |=
		memcmp(&trace->opts, &config->trace, sizeof(trace->opts)) ||
		wanted_events != trace->wants_events;
	trace->opts = config->trace;
	trace->n_rules = 0;
	for (size_t i = 0; i < config->n_alerts; i++) {
		struct service_trace_rule *rule = &trace->rules[trace->n_rules];

		if (!config->alert_trace_ms[i])
			continue;
		snprintf(rule->name, sizeof(rule->name), "%s",
			 config->alerts[i].name);
		rule->duration_ms = config->alert_trace_ms[i];
		trace->n_rules++;
	}
}

int service_trace_fd(const struct service_trace *trace)
{
	if (is_loading(trace))
		return worker_fd(trace->worker);
	return trace->tracer ? netobs_fd(trace->tracer) : -1;
}

/* An idle tracer has delivered all. */
static void rest_if_idle(struct service_trace *trace)
{
	const int64_t now = now_ms();

	if (now < trace->look_at_ms)
		return;
	trace->look_at_ms = now + LOOK_MS;
	if (service_trace_totals(trace).connections)
		trace->idle_at_ms = now + IDLE_MS;
	else if (trace->is_stale || now >= trace->idle_at_ms)
		free_tracer(trace);
}

int service_trace_dispatch(struct service_trace *trace)
{
	int r;

	if (is_loading(trace))
		take_tracer(trace);
	diagnoses_dispatch(&trace->diagnoses, now_ms());
	if (!trace->tracer)
		return is_loading(trace) ? 0 : -ECANCELED;
	r = netobs_dispatch(trace->tracer);
	if (r >= 0 || r == -EINTR) {
		if (!trace->is_leaving)
			rest_if_idle(trace);
		return 0;
	}
	if (r != -ECANCELED)
		report_trace_failure(trace, "continue", r);
	free_tracer(trace);
	return -ECANCELED;
}

/* Alerts that wait have not been traced, and never will be. The load ends on its thread. */
static void abandon_loading(struct service_trace *trace)
{
	if (is_loading(trace))
		worker_free(TAKE_PTR(trace->worker));
	trace->past.refused += trace->n_waiting;
	trace->n_waiting = 0;
}

void service_trace_stop(struct service_trace *trace)
{
	abandon_loading(trace);
	diagnoses_dispatch(&trace->diagnoses, INT64_MAX);
	trace->is_stopped = true;
	trace->is_leaving = trace->tracer;
	netobs_stop(trace->tracer);
}

void service_trace_done(struct service_trace *trace)
{
	netobs_free(TAKE_PTR(trace->tracer));
	diagnoses_done(&trace->diagnoses);
	worker_free(TAKE_PTR(trace->worker));
	free(TAKE_PTR(trace->work));
	free(TAKE_PTR(trace->waiting));
}
