/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service.h"

#include <stdio.h>

#include "base/util.h"
#include "service/outputs/output.h"

static bool makes_alerts(const struct service_config *config)
{
	return config->flows.alerts.n;
}

static bool makes_sessions(const struct service_config *config)
{
	return config->wants_sessions;
}

/* Groups count connections. */
static bool has_groups(const struct service_config *config)
{
	return config->n_groups;
}

static bool makes_drops(const struct service_config *config)
{
	return config->wants_drops;
}

static bool makes_mappings(const struct service_config *config)
{
	return config->flows.nat;
}

static bool makes_traces(const struct service_config *config)
{
	for (size_t i = 0; i < config->n_alerts; i++)
		if (config->alert_trace_ms[i])
			return true;
	return false;
}

static bool makes_groups(const struct service_config *config)
{
	for (size_t i = 0; i < config->n_groups; i++)
		if (config->groups[i].has_records)
			return true;
	return false;
}

static const struct {
	const char *type;
	bool (*is_made)(const struct service_config *config);
	const char *made; /* NULL: they may have no sink */
	const char *need; /* NULL: a sink may take them before there are any */
	/* @return whether the service uses them itself, so that they need no sink; NULL: no */
	bool (*is_used)(const struct service_config *config);
} types[] = {
	{ "alert", makes_alerts, "alerts are counted, and", NULL, NULL },
	{ "session", makes_sessions, "sessions are counted, and",
	  "there are no sessions: they need 'enabled = yes' in [sessions]",
	  has_groups },
	{ "drop", makes_drops, "drops are counted, and",
	  "there are no drops: they need 'enabled = yes' in [drops]", NULL },
	{ "mapping", makes_mappings, NULL,
	  "there are no mappings: they need 'nat = yes' in [capture]", NULL },
	{ "journey", makes_traces, "journeys are counted, and",
	  "there are no journeys: they need 'trace = 10s' in [alert \"NAME\"]",
	  NULL },
	{ "trace", makes_traces, NULL,
	  "there are no traces: they need 'trace = 10s' in [alert \"NAME\"]",
	  NULL },
	{ "group", makes_groups, "records of groups are",
	  "there are no records of groups: they need 'records = yes' in [group \"NAME\"]",
	  NULL },
};

static bool has_sink_of(const struct service_config *config, const char *type)
{
	for (size_t i = 0; i < config->n_sinks; i++)
		if (output_spec_takes(config->sinks[i].text, type))
			return true;
	return false;
}

void service_match_sinks(const struct service_config *config,
			 void (*warn)(const char *line, void *user), void *user)
{
	char text[256] = "";

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const char *type = types[i].type;
		const bool is_made = types[i].is_made(config);

		if (is_made == has_sink_of(config, type) ||
		    (is_made && types[i].is_used && types[i].is_used(config)))
			continue;
		if (is_made && types[i].made)
			snprintf(text, sizeof(text),
				 "%s sent to no sink: one takes them with 'records = %s' or 'records = flow,%s'",
				 types[i].made, type, type);
		else if (!is_made && types[i].need)
			snprintf(text, sizeof(text),
				 "a sink has 'records = %s', and %s", type,
				 types[i].need);
		else
			continue;
		warn(text, user);
	}
}

void service_match_names(const struct service_config *config,
			 void (*warn)(const char *line, void *user), void *user)
{
	const struct flows_config *flows = &config->flows;

	if (flows->container_names && !flows->process && !config->wants_sessions)
		warn("container_names: no record has such names: flows need 'process = yes' in [capture], sessions 'enabled = yes' in [sessions]",
		     user);
}
