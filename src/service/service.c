/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netobs/netobs.h>
#include <netobs/persist.h>

#include "service/options/args.h"
#include "base/clock_ms.h"
#include "base/util.h"
#include "base/value.h"
#include "service/control/control.h"
#include "service/text/human.h"
#include "service/control/notify.h"
#include "service/options/privileges.h"
#include "service_keys.h"
#include "service_matching.h"

/* ---- Messages -------------------------------------------------------------------- */

static void log_error(const char *line, void *service)
{
	service_log(NETOBS_LOG_ERROR, line, service);
}

static void log_warning(const char *line, void *service)
{
	service_log(NETOBS_LOG_WARNING, line, service);
}

static void report_status(const struct service *service)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	uint64_t lost = 0;

	if (netobs_stats_get(service->ctx, &stats) < 0)
		return;
	for (unsigned int i = 0; i < NETOBS_REASONS_MAX; i++)
		lost += stats.lost[i].packets;
	notify_now("STATUS=Observing %" PRIu32 " interfaces: %" PRIu64
		   " packets, %" PRIu64 " lost",
		   stats.interfaces, stats.seen.packets, lost);
}

/* By choices of log_level. */
static const int log_levels[] = { NETOBS_LOG_ERROR, NETOBS_LOG_WARNING,
				  NETOBS_LOG_INFO, NETOBS_LOG_DEBUG };

static void set_log_level(struct service *service)
{
	const int chosen = service->config->log_level;

	service->log_level = chosen < 0 ? NETOBS_LOG_WARNING : log_levels[chosen];
}

/* ---- Callbacks ------------------------------------------------------------------- */

static void pass_flow(const struct netobs_flow *flow, void *user)
{
	struct service *service = user;

	service->is_draining = true;
	tcp_health_add(&service->metrics_source.health, flow);
	rtt_check_flow(&service->rtt_check, flow);
	service_groups_flow(&service->groups, flow);
	service_sinks_flow(&service->sinks, flow);
	control_flow(service->control, flow);
}

static void on_alert(const struct netobs_alert *alert, void *user)
{
	struct service *service = user;

	service_sinks_record(&service->sinks, &alert->record);
	service_trace_alert(&service->trace, alert);
}

static void pass_journey(const struct netobs_journey *journey, void *user)
{
	struct service *service = user;

	service_sinks_record(&service->sinks, &journey->record);
}

static void pass_trace_event(const struct netobs_trace_event *event, void *user)
{
	struct service *service = user;

	service_sinks_record(&service->sinks, &event->record);
}

static void pass_group(const struct netobs_group_record *group, void *user)
{
	struct service *service = user;

	service_sinks_record(&service->sinks, &group->record);
}

static void on_mapping(const struct netobs_mapping *mapping, void *user)
{
	struct service *service = user;

	service_sinks_record(&service->sinks, &mapping->record);
}

static void pass_session(const struct netobs_session *session, void *user)
{
	struct service *service = user;

	struct netobs_session known = *session;

	if (service->config->flows.rtt)
		rtt_check_session(&service->rtt_check, session);
	known.conversation_id =
		netobs_session_conversation(service->ctx, session);
	service_groups_session(&service->groups, &known);
	service_sinks_record(&service->sinks, &known.record);
}

static void pass_drop(const struct netobs_drop *drop, void *user)
{
	struct service *service = user;

	service_sinks_record(&service->sinks, &drop->record);
}

/* The sinks and rules of this moment. */
static void refresh_metrics(struct service *service)
{
	const struct rules *rules = &service->config->flows.rules;

	service->metrics_source.n_outputs = service->sinks.n;
	service->metrics_source.closed = &service->sinks.totals;
	service->metrics_source.sampling =
		service->config->flows.sampling_interval;
	service->metrics_source.rules = rules->default_action ? rules : NULL;
	service->metrics_source.alerts = &service->config->flows.alerts;
	service->metrics_source.groups = service->groups.metrics;
	service->metrics_source.n_groups = service->groups.n_metrics;
	service->metrics_source.sessions =
		service_sessions_totals(&service->sessions);
	service_drops_refresh(&service->drops);
	service->metrics_source.drops = &service->drops.totals;
	service->metrics_source.trace = service_trace_totals(&service->trace);
}

void service_serve_metrics(struct service *service)
{
	refresh_metrics(service);
	metrics_dispatch(service->metrics);
}

static void end_groups_interval(struct service *service)
{
	metrics_forget(service->metrics);
	service_groups_interval(&service->groups, clock_ns(CLOCK_REALTIME),
				pass_group, service);
}

static void on_interval(void *user)
{
	struct service *service = user;

	service->is_draining = false;
	end_groups_interval(service);
	service_sinks_interval(&service->sinks);
	control_interval(service->control);
	refresh_metrics(service);
	metrics_write(service->metrics, false);
	report_status(service);
}

/* Other sinks cannot take back records that they have sent. No commit contains alerts. */
static bool has_disks_only(const struct service_config *config)
{
	size_t n = 0;

	for (size_t i = 0; i < config->n_sinks; i++) {
		const char *spec = config->sinks[i].text;

		if (!output_spec_takes(spec, "flow"))
			continue;
		if (!output_spec_option(spec, "spool=disk:"))
			return false;
		n++;
	}
	return n;
}

static void fill_service_options(struct service *service,
				 const struct service_config *config,
				 struct netobs_opts *opts)
{
	flows_config_fill(&config->flows, opts);
	if (config->persist)
		opts->persist = config->persist_dir ?: NETOBS_PERSIST_DIR;
	opts->flags |= NETOBS_CONTAINERS;
	opts->on_flow = pass_flow;
	if (flows_may_alert(&config->flows))
		opts->on_alert = on_alert;
	opts->on_mapping = on_mapping;
	opts->on_interval = on_interval;
	/* It never changes while the service runs: warn_of_commits(). */
	if (!service->ctx)
		service->has_commits = config->persist && has_disks_only(config);
	if (service->has_commits)
		opts->flags |= NETOBS_COMMITS;
	opts->on_log = service_log;
	opts->user = service;
}

static void keep_totals(const struct output *output, void *user)
{
	struct service *service = user;

	sink_totals_keep(&service->sinks.totals, output);
}

static void set_callbacks(struct service *service)
{
	service->sessions.on_session = pass_session;
	service->sessions.on_log = service_log;
	service->sessions.user = service;
	service->drops.on_drop = pass_drop;
	service->drops.on_log = service_log;
	service->drops.user = service;
	service->trace.on_journey = pass_journey;
	service->trace.on_event = pass_trace_event;
	service->trace.on_log = service_log;
	service->trace.user = service;
	service->sinks.pattern = (struct output){
		.on_log = service_log,
		.on_last = keep_totals,
		.user = service,
	};
}

/* ---- Configurations -------------------------------------------------------------- */

/* @return NULL: it is wrong, which was logged */
static struct service_config *read_config(struct service *service,
					  bool leaves_filters)
{
	struct service_config *config = malloc(sizeof(*config));
	unsigned int errors;
	char text[64];

	if (!config)
		return NULL;
	errors = service_config_read(config, service->path, leaves_filters,
				     log_error, service);
	if (!errors)
		return config;
	if (errors > CONF_ERRORS_MAX) {
		snprintf(text, sizeof(text), "and %u more errors",
			 errors - CONF_ERRORS_MAX);
		log_error(text, service);
	}
	service_config_clear(config);
	free(config);
	return NULL;
}

static void free_config(struct service_config *config)
{
	if (config)
		service_config_clear(config);
	free(config);
}

/* Metrics and others go on to use strings of the first one. */
static void replace_config(struct service *service, struct service_config *config)
{
	if (!service->first.n_texts) {
		service->first = service->config->conf;
		service->config->conf = (struct conf){ 0 };
	}
	free_config(service->config);
	service->config = config;
	service->in_use_ms = clock_ms(CLOCK_REALTIME);
	metrics_forget(service->metrics);
	set_log_level(service);
}

static void warn_of_commits(struct service *service)
{
	const struct service_config *config = service->config;

	if (config->persist && has_disks_only(config) != service->has_commits)
		log_warning(
			service->has_commits ?
				"persist: not all sinks have a spool on disk: others may get records twice if this process is killed; from the next start on, what a killed process was delivering is lost" :
				"persist: all sinks have a spool on disk: from the next start on, an interval takes effect as a whole",
			service);
}

static int set_alerts(struct service *service, const struct service_config *config)
{
	const struct alert_rules *alerts = &config->flows.alerts;

	return flows_may_alert(&config->flows) ?
		       netobs_alerts_set(service->ctx, alerts->list, alerts->n) :
		       0;
}

/* While messages are about the next configuration. If it fails, the previous rules stay. */
static int replace_alerts(struct service *service)
{
	struct service_config *next = service->next;
	int r = set_alerts(service, next);

	if (r < 0) {
		alert_rules_move(&next->flows.alerts,
				 &service->config->flows.alerts);
		next->n_alerts = 0;
	}
	return r;
}

/* Of the library, which takes a while for filters, so that it is not waited for. */
static int begin_change(struct service *service)
{
	struct service_config *config = service->next;
	NETOBS_OPTS(netobs_opts, opts);
	int r = service_sessions_prepare(&service->sessions, config,
					 service->ctx);

	r = r ?: service_drops_prepare(&service->drops, config, service->ctx);
	if (r < 0)
		return r;
	fill_service_options(service, config, &opts);
	return netobs_change_begin(service->ctx, &opts);
}

static void abandon_change(struct service *service)
{
	service_sinks_abandon(&service->sinks);
	service_sessions_abandon(&service->sessions);
	service_drops_abandon(&service->drops);
	metrics_forget(service->metrics);
	free_config(TAKE_PTR(service->next));
}

/* Groups that stay the same keep what they have counted; sinks of before get records of others. */
static int commit_groups(struct service *service)
{
	int r = service_groups_commit(&service->groups, service->config,
				      clock_ns(CLOCK_REALTIME), pass_group,
				      service);

	if (r < 0)
		log_error("groups: some of them are missing: out of memory",
			  service);
	return r;
}

/* All but sinks that wait for their predecessors. */
static void commit_change(struct service *service)
{
	struct service_config *config;

	service->reload_result = replace_alerts(service);
	if (service->reload_result ==
	    0) /* else the previous rules stay, and what they trace */
		service_trace_commit(&service->trace, service->next);
	config = TAKE_PTR(service->next);
	replace_config(service, config);
	warn_of_commits(service);
	service_match_sinks(service->config, log_warning, service);
	service_match_names(service->config, log_warning, service);
	service->reload_result = commit_groups(service) ?: service->reload_result;
	service_sinks_commit(&service->sinks, config);
	service_sessions_commit(&service->sessions, config);
	service_drops_commit(&service->drops, config);
}

/* Certificates are renewed without a change of the configuration. */
static void renew_metrics(struct service *service)
{
	char why[512], text[640];

	if (metrics_renew(service->metrics, why, sizeof(why)) == 0)
		return;
	snprintf(text, sizeof(text),
		 "metrics: the previous certificates stay in use: %s", why);
	log_warning(text, service);
}

/* What is in use after a reload that failed: all of the previous one, or a part of the new one. */
static void describe_failure(const struct service *service, char *ret_text,
			     size_t size)
{
	char since[32];

	if (service->reload == SERVICE_RELOAD_HANDING_OVER) {
		snprintf(ret_text, size,
			 "the new configuration is in use, but for what the messages before name");
		return;
	}
	human_time(since, sizeof(since), service->in_use_ms * NSEC_PER_MSEC);
	since[strcspn(since, ".")] = '\0';
	snprintf(ret_text, size,
		 "the new configuration is not in use: nothing was changed; still using the configuration of %s",
		 since);
}

static void end_reload(struct service *service, int r)
{
	char failure[160];

	describe_failure(service, failure, sizeof(failure));
	service->reload = SERVICE_RELOAD_NONE;
	service->reloads.total++;
	service->reloads.failed += r != 0;
	service->reloads.is_last_fine = r == 0;
	service->reloads.last_ms = clock_ms(CLOCK_REALTIME);
	if (r == 0)
		service_log(NETOBS_LOG_INFO,
			    "the configuration has been read again", service);
	else if (r != -ECANCELED)
		service_log(NETOBS_LOG_ERROR, failure, service);
	renew_metrics(service);
	control_end_reload(service->control, r == 0 ? NULL : failure);
	notify_send("READY=1");
	report_status(service);
}

/* What it is at works until @r is another result. */
static void go_on_with_reload(struct service *service, int r)
{
	if (r == -EINPROGRESS)
		return;
	if (service->reload == SERVICE_RELOAD_HANDING_OVER) {
		end_reload(service, r < 0 ? r : service->reload_result);
		return;
	}
	if (r == 0 && service->reload == SERVICE_RELOAD_OPENING)
		r = begin_change(service);
	else if (r == 0)
		commit_change(service);
	if (r == 0) {
		service->reload++;
		return;
	}
	abandon_change(service);
	end_reload(service, r);
}

static int reload_step(struct service *service)
{
	switch (service->reload) {
	case SERVICE_RELOAD_OPENING:
		return service_sinks_prepare(&service->sinks, service->next);
	case SERVICE_RELOAD_CHANGING:
		return netobs_change_result(service->ctx);
	case SERVICE_RELOAD_HANDING_OVER:
		return service_sinks_proceed(&service->sinks, service->config);
	default:
		return -EINPROGRESS;
	}
}

static void begin_reload(struct service *service)
{
	service->is_reload_due = false;
	control_begin_reload(service->control);
	notify_reloading();
	service->next = read_config(service, true);
	if (!service->next) {
		end_reload(service, -EINVAL);
		return;
	}
	service_config_keep(service->next, service->config, log_warning, service);
	service->reload = SERVICE_RELOAD_OPENING;
}

void service_reload(struct service *service)
{
	service->is_reload_due = true;
}

/* Alerts, sessions and mappings are not for the end of the interval. */
int service_dispatch(struct service *service)
{
	int r = service->is_stopped ? -ECANCELED : netobs_dispatch(service->ctx);
	int sessions = service_sessions_dispatch(&service->sessions);
	int drops = service_drops_dispatch(&service->drops);
	int trace = service_trace_dispatch(&service->trace);

	service_sinks_flush_prompt(&service->sinks);
	if (r == -ECANCELED) {
		/* The observers may be of a reload that comes too late. */
		service_sessions_abandon(&service->sessions);
		service_sessions_stop(&service->sessions);
		service_drops_abandon(&service->drops);
		service_drops_stop(&service->drops);
		if (!service->is_stopped) /* no alert follows */
			service_trace_stop(&service->trace);
		service->is_stopped = true;
	}
	if (r < 0 && r != -ECANCELED && r != -EINTR)
		return r;
	if (sessions < 0 && sessions != -ECANCELED)
		return sessions;
	if (drops < 0 && drops != -ECANCELED)
		return drops;
	if (r != -ECANCELED || sessions != r || drops != r || trace != r)
		return 0;
	/* The last connections have ended after the last flows. */
	end_groups_interval(service);
	return r;
}

void service_stop(struct service *service)
{
	netobs_stop(service->ctx);
	service_sessions_stop(&service->sessions);
	service_drops_stop(&service->drops);
}

/* Spools of sinks that are replaced between two commits have no record that a later one has. */
void service_tend(struct service *service)
{
	enum service_reload before;

	if (service->has_commits && service->is_draining)
		return;
	do {
		before = service->reload;
		go_on_with_reload(service, reload_step(service));
	} while (service->reload > before);
	/* Two observers would both report the same sessions, or drops. */
	if (service->is_reload_due && !service->reload && !service->is_stopped &&
	    !service->sessions.is_leaving && !service->drops.is_leaving)
		begin_reload(service);
}

/* Of the library's change, its descriptor tells. */
int service_rest(const struct service *service)
{
	if (service->is_stopped)
		return -1;
	switch (service->reload) {
	case SERVICE_RELOAD_OPENING:
		return 0;
	case SERVICE_RELOAD_HANDING_OVER:
		return service_sinks_rest(&service->sinks);
	default:
		return -1;
	}
}

/* ---- Control --------------------------------------------------------------------- */

static void on_reload(void *user)
{
	service_reload(user);
}

static const char *on_metrics(void *user)
{
	struct service *service = user;

	refresh_metrics(service);
	return metrics_text(service->metrics);
}

static int on_reopen(void *user)
{
	struct service *service = user;

	return service_sinks_reopen(&service->sinks);
}

static int on_level(const char *level, void *user)
{
	struct service *service = user;
	int choice = value_choice(ARGS_WORDS(CHOICES_log_levels(OPTION_COMMA)),
				  level);

	if (choice >= 0)
		service->log_level = log_levels[choice];
	return choice < 0 ? choice : 0;
}

/* Without a configured path, a socket is no must: another service may have the default one. */
static int open_control(struct service *service)
{
	static const struct control_ops ops = {
		.add_status = service_status_add,
		.metrics = on_metrics,
		.request_reload = on_reload,
		.reopen = on_reopen,
		.set_level = on_level,
		.mappings = service_mappings_add,
	};
	const struct control_config *config = &service->config->control;
	char why[256], text[640];
	int r = control_open(config, &ops, service, &service->control, why,
			     sizeof(why));

	if (r == 0)
		return 0;
	snprintf(text, sizeof(text), "there is no control socket %s: %s",
		 config->path ?: CONTROL_SOCKET, why);
	service_log(config->path ? NETOBS_LOG_ERROR : NETOBS_LOG_WARNING, text,
		    service);
	return config->path ? r : 0;
}

/* ---- Start and end --------------------------------------------------------------- */

int service_start(struct service *service)
{
	NETOBS_OPTS(netobs_opts, opts);
	int r;

	service->has_levels = service_log_is_journal(STDERR_FILENO);
	service->log_level = NETOBS_LOG_WARNING;
	service->started_ms = service->in_use_ms = clock_ms(CLOCK_REALTIME);
	service->config = read_config(service, false);
	if (!service->config)
		return EXIT_USAGE;
	set_log_level(service);
	set_callbacks(service);
	fill_service_options(service, service->config, &opts);
	r = netobs_new(&opts, &service->ctx);
	service->sinks.pattern.context = service->ctx;
	if (r == 0)
		r = set_alerts(service, service->config);
	if (r == 0)
		r = commit_groups(service);
	service_trace_commit(&service->trace, service->config);
	service_match_sinks(service->config, log_warning, service);
	service_match_names(service->config, log_warning, service);
	return r < 0 ? EXIT_FAILED : EXIT_FINE; /* which was logged */
}

/* An address that is in use is reported before programs are attached. */
static int open_metrics(struct service *service)
{
	char text[640], where[512];
	int r;

	service->metrics_source = (struct metrics_source){
		.ctx = service->ctx,
		.outputs = service->sinks.outputs,
		.rtt_check = &service->rtt_check,
		.sampling = service->config->flows.sampling_interval,
		.on_log = service_log,
		.user = service,
	};
	r = metrics_open(&service->config->flows.metrics,
			 &service->metrics_source, &service->metrics, text,
			 sizeof(text));
	if (r < 0) {
		log_error(text, service);
	} else if (metrics_where(service->metrics, where, sizeof(where))) {
		snprintf(text, sizeof(text), "serving metrics at %s", where);
		service_log(NETOBS_LOG_INFO, text, service);
	}
	return r;
}

/* There are none before them that would have to be waited for. */
static int open_first_sinks(struct service *service)
{
	struct service_sinks *sinks = &service->sinks;
	int r;

	do
		r = service_sinks_prepare(sinks, service->config);
	while (r == -EINPROGRESS);
	if (r < 0)
		return r;
	service_sinks_commit(sinks, service->config);
	do
		r = service_sinks_proceed(sinks, service->config);
	while (r == -EINPROGRESS);
	return r;
}

int service_observe(struct service *service)
{
	int r = open_metrics(service);

	r = r ?: open_control(service);
	r = r ?: netobs_start(service->ctx);
	if (!r)
		r = service_sessions_prepare(&service->sessions,
					     service->config, service->ctx);
	if (!r)
		r = service_drops_prepare(&service->drops, service->config,
					  service->ctx);
	if (r < 0)
		return r;
	/* Sinks may start threads, which would keep more. */
	privileges_drop(&service->config->flows.interfaces, true, true);
	r = open_first_sinks(service);
	service_sessions_commit(&service->sessions, service->config);
	service_drops_commit(&service->drops, service->config);
	if (r == 0)
		notify_send("READY=1");
	return r;
}

static void log_stats(struct service *service)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	char text[4096];

	if (netobs_stats_get(service->ctx, &stats) == 0 &&
	    netobs_stats_json(&stats, text, sizeof(text)) > 0)
		service_log(NETOBS_LOG_INFO, text, service);
}

int service_finish(struct service *service)
{
	service->is_stopped = true;
	return service_sinks_finish(&service->sinks);
}

/* The last metrics have the outcome of all records. */
int service_end(struct service *service)
{
	bool is_complete = service_sinks_close(&service->sinks);

	refresh_metrics(service);
	metrics_write(service->metrics, true);
	metrics_close(TAKE_PTR(service->metrics));
	control_close(TAKE_PTR(service->control));
	if (service->ctx)
		log_stats(service);
	return is_complete ? EXIT_FINE : EXIT_FAILED;
}

void service_clear(struct service *service)
{
	service_sessions_done(&service->sessions);
	service_drops_done(&service->drops);
	service_trace_done(&service->trace);
	netobs_free(service->ctx);
	service_groups_clear(&service->groups);
	sink_totals_done(&service->sinks.totals);
	free_config(service->next);
	free_config(service->config);
	conf_clear(&service->first);
}
