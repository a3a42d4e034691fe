/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include <netobs/netobs.h>

#include "base/clock_ms.h"
#include "base/util.h"
#include "service/control/control.h"
#include "service/options/args.h"
#include "service/options/privileges.h"

int service_start(struct service *service)
{
	NETOBS_OPTS(netobs_opts, opts);
	int r;

	service->has_levels = service_log_is_journal(STDERR_FILENO);
	service_log_set_level(service, -1);
	service->started_ms = service->in_use_ms = clock_ms(CLOCK_REALTIME);
	service->config = service_read_config(service, false);
	if (!service->config)
		return EXIT_USAGE;
	service_log_set_level(service, service->config->log_level);
	service_set_callbacks(service);
	service_fill_options(service, service->config, &opts);
	r = netobs_new(&opts, &service->ctx);
	service->sinks.pattern.context = service->ctx;
	if (r == 0)
		r = service_set_alerts(service, service->config);
	if (r == 0)
		r = service_commit_groups(service);
	service_trace_commit(&service->trace, service->config);
	service_match_sinks(service->config, service_log_warning, service);
	service_match_names(service->config, service_log_warning, service);
	return r < 0 ? EXIT_FAILED : EXIT_FINE; /* which was logged */
}

/* Open the sinks of the first configuration: there are no predecessors to wait for. */
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

static unsigned int kept_privileges(const struct service_config *config)
{
	return KEEP_FILES | flows_config_privileges(&config->flows) |
	       (config->trace.netfilter ? KEEP_PROCESSES : 0);
}

int service_observe(struct service *service)
{
	int r = service_open_metrics(service);

	r = r ?: service_open_control(service);
	r = r ?: netobs_start(service->ctx);
	if (!r)
		r = service_observers_prepare(&service->observers,
					      service->config, service->ctx);
	if (r < 0)
		return r;
	/* Sinks may start threads, which would keep more. */
	privileges_drop(&service->config->flows.interfaces,
			kept_privileges(service->config));
	r = open_first_sinks(service);
	service_observers_commit(&service->observers, service->config);
	if (r == 0)
		notify_send("READY=1");
	return r;
}

void service_notify_status(const struct service *service)
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

/* Alerts, sessions and mappings are not for the end of the interval. */
int service_dispatch(struct service *service)
{
	int r = service->is_stopped ? -ECANCELED : netobs_dispatch(service->ctx);
	int observers, trace;

	service_deliver_known_sessions(service);
	observers = service_observers_dispatch(&service->observers);
	trace = service_trace_dispatch(&service->trace);
	service_sinks_flush_prompt(&service->sinks);
	if (r == -ECANCELED) {
		/* The observers may be of a reload that comes too late. */
		service_observers_abandon(&service->observers);
		service_observers_stop(&service->observers);
		if (!service->is_stopped) /* no alert follows */
			service_trace_stop(&service->trace);
		service->is_stopped = true;
	}
	if (r < 0 && r != -ECANCELED && r != -EINTR)
		return r;
	if (observers < 0 && observers != -ECANCELED)
		return observers;
	if (r != -ECANCELED || observers != r || trace != r)
		return 0;
	/* The last connections have ended after the last flows. */
	service_deliver_sessions(service);
	service_end_groups_interval(service);
	return r;
}

void service_stop(struct service *service)
{
	netobs_stop(service->ctx);
	service_observers_stop(&service->observers);
}

int service_finish(struct service *service)
{
	service->is_stopped = true;
	service_deliver_sessions(service);
	return service_sinks_finish(&service->sinks);
}

static void log_stats(struct service *service)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	char text[4096];

	if (netobs_stats_get(service->ctx, &stats) == 0 &&
	    netobs_stats_json(&stats, text, sizeof(text)) > 0)
		service_log(NETOBS_LOG_INFO, text, service);
}

/* The last metrics have the outcome of all records. */
int service_end(struct service *service)
{
	bool is_complete = service_sinks_close(&service->sinks);

	service_refresh_metrics(service);
	metrics_write(service->metrics, true);
	metrics_close(TAKE_PTR(service->metrics));
	control_close(TAKE_PTR(service->control));
	if (service->ctx)
		log_stats(service);
	return is_complete ? EXIT_FINE : EXIT_FAILED;
}

void service_clear(struct service *service)
{
	service_observers_done(&service->observers);
	session_queue_clear(&service->waiting);
	service_trace_done(&service->trace);
	netobs_free(service->ctx);
	service_groups_clear(&service->groups);
	sink_totals_done(&service->sinks.totals);
	service_free_config(service->next);
	service_free_config(service->config);
	conf_clear(&service->first);
}
