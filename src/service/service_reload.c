/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/netobs.h>

#include "base/clock_ms.h"
#include "base/util.h"
#include "service/control/control.h"
#include "service/text/human.h"

/* ---- Configurations -------------------------------------------------------------- */

struct service_config *service_read_config(struct service *service,
					   bool leaves_filters)
{
	struct service_config *config = malloc(sizeof(*config));
	unsigned int errors;
	char text[64];

	if (!config)
		return NULL;
	errors = service_config_read(config, service->path, leaves_filters,
				     service_log_error, service);
	if (!errors)
		return config;
	if (errors > CONF_ERRORS_MAX) {
		snprintf(text, sizeof(text), "and %u more errors",
			 errors - CONF_ERRORS_MAX);
		service_log_error(text, service);
	}
	service_config_clear(config);
	free(config);
	return NULL;
}

void service_free_config(struct service_config *config)
{
	if (config)
		service_config_clear(config);
	free(config);
}

/* Metrics and others continue to use strings of the first configuration. */
static void replace_config(struct service *service, struct service_config *config)
{
	if (!service->first.n_texts) {
		service->first = service->config->conf;
		service->config->conf = (struct conf){ 0 };
	}
	service_free_config(service->config);
	service->config = config;
	service->in_use_ms = clock_ms(CLOCK_REALTIME);
	metrics_forget(service->metrics);
	service_log_set_level(service, service->config->log_level);
}

int service_set_alerts(struct service *service,
		       const struct service_config *config)
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
	int r = service_set_alerts(service, next);

	if (r < 0) {
		alert_rules_move(&next->flows.alerts,
				 &service->config->flows.alerts);
		next->n_alerts = 0;
	}
	return r;
}

/* ---- Steps of a change ----------------------------------------------------------- */

/* Begin to change the library's options. Filters take a while, so the service does not wait. */
static int begin_change(struct service *service)
{
	struct service_config *config = service->next;
	NETOBS_OPTS(netobs_opts, opts);
	int r = service_observers_prepare(&service->observers, config,
					  service->ctx);

	if (r < 0)
		return r;
	service_fill_options(service, config, &opts);
	return netobs_change_begin(service->ctx, &opts);
}

static void abandon_change(struct service *service)
{
	service_sinks_abandon(&service->sinks);
	service_observers_abandon(&service->observers);
	metrics_forget(service->metrics);
	service_free_config(TAKE_PTR(service->next));
}

/* Put all parts in effect but sinks that wait for their predecessors. */
static void commit_change(struct service *service)
{
	struct service_config *config;

	service_deliver_sessions(service);
	service->reload_result = replace_alerts(service);
	if (service->reload_result ==
	    0) /* on failure, the previous rules stay, with their traces */
		service_trace_commit(&service->trace, service->next);
	config = TAKE_PTR(service->next);
	replace_config(service, config);
	service_match_sinks(service->config, service_log_warning, service);
	service_match_names(service->config, service_log_warning, service);
	service->reload_result = service_commit_groups(service) ?:
					 service->reload_result;
	service_sinks_commit(&service->sinks, config);
	service_observers_commit(&service->observers, config);
	service_deliver_known_sessions(service);
	service_sinks_flush_prompt(&service->sinks);
}

/* ---- A reload -------------------------------------------------------------------- */

/* Describe the configuration in use after a failed reload: the previous one, or a part of the new one. */
static void describe_failure(const struct service *service, char *ret_text,
			     size_t size)
{
	char since[32];

	if (service->reload == SERVICE_RELOAD_HANDING_OVER) {
		snprintf(ret_text, size,
			 "the new configuration is in use, except for what earlier messages name");
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
	control_end_reload(service->control, r == 0 ? NULL : failure);
	notify_send("READY=1");
	service_notify_status(service);
}

/* Continue with the steps of the reload. @r: result of the current step. */
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

/* Observers that end deliver their last records first, and so do sessions that wait for their conversation. */
static bool is_finishing(const struct service *service)
{
	return service_observers_are_leaving(&service->observers) ||
	       (!service->config->wants_sessions &&
		session_queue_first(&service->waiting));
}

static int reload_step(struct service *service)
{
	int r;

	switch (service->reload) {
	case SERVICE_RELOAD_OPENING:
		return service_sinks_prepare(&service->sinks, service->next);
	case SERVICE_RELOAD_CHANGING:
		return netobs_change_result(service->ctx);
	case SERVICE_RELOAD_HANDING_OVER:
		r = service_sinks_proceed(&service->sinks, service->config);
		return is_finishing(service) ? -EINPROGRESS : r;
	default:
		return -EINPROGRESS;
	}
}

static void begin_reload(struct service *service)
{
	service->is_reload_due = false;
	control_begin_reload(service->control);
	notify_reloading();
	service->next = service_read_config(service, true);
	if (!service->next) {
		end_reload(service, -EINVAL);
		return;
	}
	service_config_keep(service->next, service->config, service_log_warning,
			    service);
	service->reload = SERVICE_RELOAD_OPENING;
}

void service_reload(struct service *service)
{
	service->is_reload_due = true;
}

void service_tend(struct service *service)
{
	enum service_reload before;

	do {
		before = service->reload;
		go_on_with_reload(service, reload_step(service));
	} while (service->reload > before);
	if (service->is_reload_due && !service->reload && !service->is_stopped)
		begin_reload(service);
}

/* The library's descriptor becomes readable when its change is done. */
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
