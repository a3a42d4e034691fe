/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The tracer of a service: alerts have their connections traced for a time. The tracer and its
 * programs are loaded for the first such alert, and unloaded some seconds after the last trace.
 * While it is being loaded, the service continues, and alerts wait for it.
 */
#ifndef NETOBS_SERVICE_SERVICE_TRACE_H
#define NETOBS_SERVICE_SERVICE_TRACE_H

#include "base/outage.h"
#include "service/metrics/metrics.h"
#include "diagnoses.h"

#include <netobs/trace.h>
#include <stdbool.h>

struct service_trace_rule {
	char name[64]; /* name of an alert rule */
	uint32_t duration_ms;
};

enum { TRACE_WAITING_MAX = 4096 };

struct service_trace {
	struct netobs *tracer;	 /* NULL: nothing is traced */
	struct worker *worker;	 /* loads tracers; NULL: none was needed yet */
	struct trace_work *work; /* of @tracer; NULL: there was none */
	/* Alerts whose connections will be traced once the tracer is loaded. */
	struct netobs_alert *waiting;
	uint32_t n_waiting, waiting_capacity;
	struct service_trace_rule rules[NETOBS_ALERT_RULES_MAX];
	size_t n_rules;
	struct netobs_trace_opts opts; /* options that the configuration sets */
	bool wants_events;
	bool is_stale;	 /* the tracer has other options than these */
	bool is_leaving; /* delivers its last journeys, then is freed */
	bool is_stopped; /* there will be no other one */
	struct trace_totals past; /* totals of earlier tracers, and of alerts */
	int64_t idle_at_ms; /* without a connection until then, the tracer is freed */
	int64_t look_at_ms; /* whether it is */
	bool has_started; /* a tracer has started: features that this kernel lacks were logged */
	bool has_warned; /* the first warning of a running tracer was logged */
	struct backoff retry; /* after failures */
	struct diagnoses diagnoses;
	void (*on_record)(const struct netobs_record *record, void *user);
	void (*on_log)(int level, const char *message, void *user);
	void *user;
};

/*
 * Do as @config says from now on. Connections that are traced stay so for their time; what else
 * tracers may take counts from the next one on, which begins when nothing is traced. Norms are taken.
 */
void service_trace_commit(struct service_trace *trace,
			  struct service_config *config);

/* Trace the connection of an alert whose rule wants it, or for a verdict. What fails is logged and counted. */
void service_trace_alert(struct service_trace *trace,
			 const struct netobs_alert *alert);

/** Trace the connection of an alert. @return as netobs_trace_arm() */
int service_trace_arm(struct netobs *tracer, const struct netobs_alert *alert,
		      uint32_t duration_ms);

/** @return the descriptor to poll for reading; -1: none */
int service_trace_fd(const struct service_trace *trace);

/**
 * Deliver journeys, for some milliseconds.
 *
 * @return 0; -ECANCELED: there is no tracer, or not any more
 */
int service_trace_dispatch(struct service_trace *trace);

/* No alert follows: have the tracer end. */
void service_trace_stop(struct service_trace *trace);

struct trace_totals service_trace_totals(const struct service_trace *trace);

void service_trace_done(struct service_trace *trace);

#endif
