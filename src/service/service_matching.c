/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service.h"

#include <stdio.h>

#include "base/util.h"
#include "service/outputs/output.h"

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

struct matched_type {
	const char *type;
	bool is_made;
	const char *made; /* NULL: they may have no sink */
	const char *need; /* NULL: a sink may take them before there are any */
	bool is_used;	  /* by the service itself, so that they need no sink */
};

static bool has_sink_of(const struct service_config *config, const char *type)
{
	for (size_t i = 0; i < config->n_sinks; i++)
		if (output_spec_takes(config->sinks[i].text, type))
			return true;
	return false;
}

static void match_sinks(const struct service_config *config,
			const struct matched_type *type,
			void (*warn)(const char *line, void *user), void *user)
{
	char text[256];

	if (type->is_made == has_sink_of(config, type->type) ||
	    (type->is_made && type->is_used))
		return;
	if (type->is_made && type->made)
		snprintf(text, sizeof(text),
			 "%s sent to no sink: one takes them with 'records = %s' or 'records = flow,%s'",
			 type->made, type->type, type->type);
	else if (!type->is_made && type->need)
		snprintf(text, sizeof(text), "a sink has 'records = %s', and %s",
			 type->type, type->need);
	else
		return;
	warn(text, user);
}

void service_match_sinks(const struct service_config *config,
			 void (*warn)(const char *line, void *user), void *user)
{
	const bool makes_traced = makes_traces(config);
	const struct matched_type types[] = {
		{ "alert", config->flows.alerts.n, "alerts are counted, and",
		  NULL, false },
		/* Groups count connections. */
		{ "session", config->wants_sessions, "sessions are counted, and",
		  "there are no sessions: they need 'enabled = yes' in [sessions]",
		  config->n_groups },
		{ "drop", config->wants_drops, "drops are counted, and",
		  "there are no drops: they need 'enabled = yes' in [drops]",
		  false },
		{ "mapping", config->flows.nat, NULL,
		  "there are no mappings: they need 'nat = yes' in [capture]",
		  false },
		{ "journey", makes_traced, "journeys are counted, and",
		  "there are no journeys: they need 'trace = 10s' in [alert \"NAME\"]",
		  false },
		{ "trace", makes_traced, NULL,
		  "there are no traces: they need 'trace = 10s' in [alert \"NAME\"]",
		  false },
		{ "verdict", config->diagnose.is_enabled,
		  "verdicts are counted, and",
		  "there are no verdicts: they need 'enabled = yes' in [diagnose]",
		  false },
		{ "group", makes_groups(config), "records of groups are",
		  "there are no records of groups: they need 'records = yes' in [group \"NAME\"]",
		  false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		match_sinks(config, &types[i], warn, user);
}

void service_match_names(const struct service_config *config,
			 void (*warn)(const char *line, void *user), void *user)
{
	const struct flows_config *flows = &config->flows;

	if (flows->container_names && !flows->process && !config->wants_sessions)
		warn("container_names: no record has such names: flows need 'process = yes' in [capture], sessions 'enabled = yes' in [sessions]",
		     user);
}
