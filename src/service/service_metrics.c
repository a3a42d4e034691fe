/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service.h"

#include <stdio.h>

#include <netobs/netobs.h>

int service_open_metrics(struct service *service)
{
	char text[640], where[512];
	int r;

	service->metrics_source = (struct metrics_source){
		.ctx = service->ctx,
		.outputs = service->sinks.outputs,
		.sampling = service->config->flows.opts.sampling,
		.on_log = service_log,
		.user = service,
	};
	r = metrics_open(&service->config->flows.metrics,
			 &service->metrics_source, &service->metrics, text,
			 sizeof(text));
	if (r < 0) {
		service_log_error(text, service);
	} else if (metrics_where(service->metrics, where, sizeof(where))) {
		snprintf(text, sizeof(text), "serving metrics at %s", where);
		service_log(NETOBS_LOG_INFO, text, service);
	}
	return r;
}

void service_refresh_metrics(struct service *service)
{
	const struct rules *rules = &service->config->flows.rules;

	service->metrics_source.n_outputs = service->sinks.n;
	service->metrics_source.closed = &service->sinks.totals;
	service->metrics_source.sampling = service->config->flows.opts.sampling;
	service->metrics_source.rules = rules->default_action ? rules : NULL;
	service->metrics_source.alerts = &service->config->flows.alerts;
	service->metrics_source.groups = service->groups.metrics;
	service->metrics_source.n_groups = service->groups.n_metrics;
	service_observers_refresh(&service->observers);
	service->metrics_source.sessions = service->observers.session_totals;
	service->metrics_source.drops = &service->observers.drop_totals;
	service->metrics_source.trace = service_trace_totals(&service->trace);
}

void service_serve_metrics(struct service *service)
{
	service_refresh_metrics(service);
	metrics_dispatch(service->metrics);
}
