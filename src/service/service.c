/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <netobs/netobs.h>

#include "base/clock_ms.h"
#include "base/util.h"
#include "service/control/control.h"
#include "service/options/args.h"
#include "service/options/privileges.h"
#include "signals.h"

/* Read the configuration and make a context by it. @return an exit status, which is EXIT_FINE if there is one */
static int start_service(struct service *service)
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
	       (config->trace.netfilter ? KEEP_PROCESSES : 0) |
	       (config->diagnose.is_enabled ? KEEP_PROCESSES : 0);
}

/* Attach, and open the sinks. @return 0; < 0: which was logged */
static int begin_observing(struct service *service)
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

/*
 * Deliver the records that wait, for some milliseconds. Alerts, sessions and mappings are not for the end of the
 * interval.
 *
 * @return 0; -ECANCELED: it was stopped, and all is delivered; < 0: it failed
 */
static int dispatch_service(struct service *service)
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

/* Deliver sessions and finish the sinks, once it was stopped. @return as service_sinks_finish() */
static int finish_service(struct service *service)
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

/* Close the sinks, and all else that is open: the last metrics have the outcome of all records. @return an exit status */
static int end_service(struct service *service)
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

static void clear_service(struct service *service)
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

/* ---- The loop -------------------------------------------------------------------- */

enum {
	FD_CONTEXT,
	FD_SESSIONS,
	FD_DROPS,
	FD_TRACE,
	FD_METRICS,
	FD_CONTROL,
	FD_SINKS
};

struct loop {
	struct service *service;
	struct pollfd fds[FD_SINKS + SERVICE_OUTPUTS_MAX];
	bool is_finishing; /* no more records come, only sinks have work */
	int watchdog_ms;   /* between two signs of life; 0: none are wanted */
	int64_t watchdog_at;
};

/* In a signal handler, too. */
static void stop_service(void *user)
{
	struct service *service = user;

	netobs_stop(service->ctx);
	service_observers_stop(&service->observers);
}

static nfds_t fill_loop_fds(struct loop *loop)
{
	const struct service *service = loop->service;
	const struct service_sinks *sinks = &service->sinks;

	const int fds[] = {
		[FD_CONTEXT] = service->is_stopped ? -1 : netobs_fd(service->ctx),
		[FD_SESSIONS] = service_observer_fd(&service->observers.sessions),
		[FD_DROPS] = service_observer_fd(&service->observers.drops),
		[FD_TRACE] = service_trace_fd(&service->trace),
		[FD_METRICS] = metrics_fd(service->metrics),
		[FD_CONTROL] = control_fd(service->control),
	};

	for (int i = 0; i < FD_SINKS; i++) {
		const bool is_over = loop->is_finishing && i >= FD_SESSIONS &&
				     i <= FD_TRACE;

		loop->fds[i] = (struct pollfd){ .fd = is_over ? -1 : fds[i],
						.events = POLLIN };
	}
	for (size_t i = 0; i < sinks->n; i++)
		loop->fds[FD_SINKS + i] =
			(struct pollfd){ .fd = output_fd(&sinks->outputs[i]),
					 .events = POLLIN };
	return FD_SINKS + sinks->n;
}

/* A service that hangs does not come here. */
static void feed_watchdog(struct loop *loop)
{
	if (!loop->watchdog_ms || now_ms() < loop->watchdog_at)
		return;
	notify_now("WATCHDOG=1");
	loop->watchdog_at = now_ms() + loop->watchdog_ms;
}

/* @ms: at most; -1: no limit */
static void wait_for_events(struct loop *loop, int ms)
{
	struct service_sinks *sinks = &loop->service->sinks;

	if (loop->watchdog_ms)
		ms = sooner_ms(ms, left_ms(loop->watchdog_at));
	if (signals_poll(loop->fds, fill_loop_fds(loop), ms) <= 0)
		return;
	if (loop->fds[FD_METRICS].revents)
		service_serve_metrics(loop->service);
	for (size_t i = 0; i < sinks->n; i++)
		if (loop->fds[FD_SINKS + i].revents)
			output_ready(&sinks->outputs[i]);
	/* Last: a request may replace the sinks. */
	if (loop->fds[FD_CONTROL].revents)
		control_dispatch(loop->service->control);
}

/* @return 0: it was stopped; < 0: it failed */
static int serve_loop(struct loop *loop)
{
	struct service *service = loop->service;

	for (;;) {
		int r;

		wait_for_events(loop, service_rest(service));
		feed_watchdog(loop);
		if (signals_take_hangup())
			service_reload(service);
		r = service_sinks_tend(&service->sinks);
		if (r < 0)
			return r;
		r = dispatch_service(service);
		service_tend(service);
		if (r < 0)
			return r == -ECANCELED ? 0 : r;
	}
}

/* Sinks that are away take up one time together; meanwhile the service answers. */
static void finish_loop(struct loop *loop)
{
	const int64_t end_ms = now_ms() + OUTPUT_FINISH_MS;

	loop->is_finishing = true;
	while (now_ms() < end_ms) {
		const int r = finish_service(loop->service);

		if (r == 0 && !service_sinks_are_pending(&loop->service->sinks))
			break;
		wait_for_events(loop, r < 0 ? 0 : left_ms(end_ms));
		feed_watchdog(loop);
	}
}

static int observe_service(struct service *service, struct loop *loop)
{
	int r;

	signals_hold(SIGHUP);
	signals_hold(SIGTERM);
	signals_hold(SIGINT);
	r = begin_observing(service);
	if (r == 0)
		r = serve_loop(loop);
	notify_send("STOPPING=1");
	signals_release_held();
	return r;
}

static int run_service(struct service *service)
{
	struct loop loop = { .service = service,
			     .watchdog_ms = (int)notify_watchdog_ms() };
	int status = start_service(service), ended;

	if (status != EXIT_FINE)
		return status;
	signals_catch(stop_service, service);
	signals_catch_hangup();
	if (observe_service(service, &loop) < 0)
		status = EXIT_FAILED;
	finish_loop(&loop);
	ended = end_service(service);
	signals_release();
	return status == EXIT_FINE ? ended : status;
}

int service_run(const char *path)
{
	struct service *service = calloc(1, sizeof(*service));
	int status;

	if (!service)
		return EXIT_FAILED;
	service->path = path;
	status = run_service(service);
	clear_service(service);
	free(service);
	return status;
}
