/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The loop of a service, which ends by a signal. */
#include "service.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include <netobs/netobs.h>

#include "base/clock_ms.h"
#include "service/control/control.h"
#include "signals.h"

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

static void stop_service(void *service)
{
	service_stop(service);
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
		r = service_dispatch(service);
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
		const int r = service_finish(loop->service);

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
	r = service_observe(service);
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
	int status = service_start(service), ended;

	if (status != EXIT_FINE)
		return status;
	signals_catch(stop_service, service);
	signals_catch_hangup();
	if (observe_service(service, &loop) < 0)
		status = EXIT_FAILED;
	finish_loop(&loop);
	ended = service_end(service);
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
	service_clear(service);
	free(service);
	return status;
}
