/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service.h"

#include <netobs/persist.h>

#include "base/clock_ms.h"
#include "service/control/control.h"

#include <errno.h>

static void take_flow(struct service *service, const struct netobs_flow *flow)
{
	tcp_health_add(&service->metrics_source.health, flow);
	service_groups_add(&service->groups, &flow->record);
	service_sinks_record(&service->sinks, &flow->record);
	control_flow(service->control, flow);
}

/* @return false: the conversation is not known before the drain has ended */
static bool find_conversation(struct service *service,
			      struct netobs_session *session)
{
	return netobs_session_conversation(service->ctx, session,
					   &session->conversation_id) != -EAGAIN;
}

static void deliver_session(struct service *service,
			    const struct netobs_session *session)
{
	service_groups_add(&service->groups, &session->record);
	service_sinks_record(&service->sinks, &session->record);
}

static void deliver_first(struct service *service)
{
	deliver_session(service, session_queue_first(&service->waiting));
	session_queue_remove(&service->waiting);
}

void service_deliver_known_sessions(struct service *service)
{
	struct netobs_session *first;

	while ((first = session_queue_first(&service->waiting)) &&
	       find_conversation(service, first))
		deliver_first(service);
}

void service_deliver_sessions(struct service *service)
{
	service_deliver_known_sessions(service);
	while (session_queue_first(&service->waiting))
		deliver_first(service);
}

/* Sessions are delivered in the order in which they were reported. */
static void take_session(struct service *service,
			 const struct netobs_session *session)
{
	struct session_queue *queue = &service->waiting;
	struct netobs_session known = *session;

	if (!session_queue_first(queue) && find_conversation(service, &known)) {
		deliver_session(service, &known);
		return;
	}
	if (session_queue_add(queue, &known))
		return;
	if (session_queue_first(queue)) /* the queue is full */
		deliver_first(service);
	if (!session_queue_add(queue, &known))
		deliver_session(service, &known);
}

/* Pass a record of the context, the other observers, or groups. */
static void pass_record(const struct netobs_record *record, void *user)
{
	struct service *service = user;

	switch (record->type) {
	case NETOBS_RECORD_FLOW:
		take_flow(service, (const struct netobs_flow *)record);
		break;
	case NETOBS_RECORD_ALERT:
		service_sinks_record(&service->sinks, record);
		service_trace_alert(&service->trace,
				    (const struct netobs_alert *)record);
		break;
	case NETOBS_RECORD_SESSION:
		if (service_observers_takes(&service->observers, record))
			take_session(service,
				     (const struct netobs_session *)record);
		break;
	case NETOBS_RECORD_DROP:
		if (service_observers_takes(&service->observers, record))
			service_sinks_record(&service->sinks, record);
		break;
	default:
		service_sinks_record(&service->sinks, record);
	}
}

void service_end_groups_interval(struct service *service)
{
	metrics_forget(service->metrics);
	service_groups_interval(&service->groups, clock_ns(CLOCK_REALTIME),
				pass_record, service);
}

static void on_interval(void *user)
{
	struct service *service = user;

	service_end_groups_interval(service);
	service_sinks_interval(&service->sinks);
	control_interval(service->control);
	service_refresh_metrics(service);
	metrics_write(service->metrics, false);
	service_notify_status(service);
}

int service_commit_groups(struct service *service)
{
	int r = service_groups_commit(&service->groups, service->config,
				      clock_ns(CLOCK_REALTIME), pass_record,
				      service);

	if (r < 0)
		service_log_error("groups: some of them are missing: out of memory",
				  service);
	return r;
}

void service_fill_options(struct service *service,
			  const struct service_config *config,
			  struct netobs_opts *opts)
{
	flows_config_fill(&config->flows, opts);
	if (config->persist)
		opts->persist = config->persist_dir ?: NETOBS_PERSIST_DIR;
	opts->flags |= NETOBS_CONTAINERS;
	opts->on_record = pass_record;
	opts->records = 1 << NETOBS_RECORD_FLOW | 1 << NETOBS_RECORD_MAPPING;
	if (flows_may_alert(&config->flows))
		opts->records |= 1 << NETOBS_RECORD_ALERT;
	opts->on_interval = on_interval;
	opts->on_log = service_log;
	opts->user = service;
}

static void keep_totals(const struct output *output, void *user)
{
	struct service *service = user;

	sink_totals_keep(&service->sinks.totals, output);
}

void service_set_callbacks(struct service *service)
{
	service->observers.on_record = pass_record;
	service->observers.on_log = service_log;
	service->observers.user = service;
	service->trace.on_record = pass_record;
	service->trace.on_log = service_log;
	service->trace.user = service;
	service->trace.diagnoses.on_record = pass_record;
	service->trace.diagnoses.on_log = service_log;
	service->trace.diagnoses.user = service;
	service->sinks.pattern = (struct output){
		.on_log = service_log,
		.on_last = keep_totals,
		.user = service,
	};
}
