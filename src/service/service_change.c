/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A new configuration beside the one in use: settings that need a restart, and messages. */
#include "service_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* ---- Changes --------------------------------------------------------------------- */

static void report_kept(const struct service_key *key,
			void (*on_kept)(const char *line, void *user), void *user)
{
	char text[160];

	snprintf(text, sizeof(text),
		 "[%s] %s: the new value takes effect after a restart",
		 key->section, key->option.name);
	on_kept(text, user);
}

static bool keep_text(struct service_config *config,
		      const struct service_config *running, size_t offset)
{
	const char **field = (const char **)((char *)config + offset);
	const char *from = *(const char *const *)((const char *)running + offset);
	bool differs = *field && from ? strcmp(*field, from) : *field != from;

	*field = from;
	return differs;
}

static bool keep_field(struct service_config *config,
		       const struct service_config *running,
		       const struct args_option *option)
{
	char *field = (char *)config + option->offset;
	const char *from = (const char *)running + option->offset;
	const size_t size = service_key_size(option->type);

	if (option->type == ARGS_STRING)
		return keep_text(config, running, option->offset);
	if (!memcmp(field, from, size))
		return false;
	memcpy(field, from, size);
	return true;
}

static bool is_filtered(const struct flows_config *flows)
{
	return flows->filter || flows->rules.default_action;
}

/* Copy filters without the places of the rules, which are those of the other configuration. */
static void copy_filters(struct flows_config *flows,
			 const struct flows_config *running)
{
	flows->filter = running->filter ? strdup(running->filter) : NULL;
	flows->rules = running->rules;
	flows->rules.path = "rules";
	for (uint32_t i = 0; i < flows->rules.n; i++)
		flows->rules.list[i].filter =
			strdup(running->rules.list[i].filter);
}

/* Programs with a filter are others: the library can replace one, but not add the first. */
static bool keep_filters(struct service_config *config,
			 const struct service_config *running)
{
	if (is_filtered(&config->flows) == is_filtered(&running->flows))
		return false;
	free(config->flows.filter);
	rules_clear(&config->flows.rules);
	config->n_filters = 0;
	copy_filters(&config->flows, &running->flows);
	return true;
}

/* An observer has its buffer from the start on. */
static bool keep_buffer(struct service_config *config,
			const struct service_config *running)
{
	const uint64_t buffer = running->sessions.buffer_bytes;

	if (!config->wants_sessions || !running->wants_sessions ||
	    config->sessions.buffer_bytes == buffer)
		return false;
	config->sessions.buffer_bytes = buffer;
	return true;
}

/* @return whether the rules can be measured: rtt and drops do not change until a restart */
static bool measures_alerts(const struct service_config *config)
{
	const struct flows_config *flows = &config->flows;

	for (uint32_t i = 0; i < flows->alerts.n; i++)
		if (alert_rule_needs_drops(flows->alerts.list[i].rule) ?
			    !flows->drops :
			    !flows->rtt)
			return false;
	return true;
}

void service_config_keep(struct service_config *config,
			 const struct service_config *running,
			 void (*on_kept)(const char *line, void *user),
			 void *user)
{
	if (keep_filters(config, running))
		on_kept("the first filter, and none after one, take effect after a "
			"restart",
			user);
	for (const struct service_key *key = service_keys; key->section; key++)
		if (key->is_fixed && keep_field(config, running, &key->option))
			report_kept(key, on_kept, user);
	if (keep_buffer(config, running))
		on_kept("[sessions] buffer: the new value takes effect after a restart",
			user);
	if (!measures_alerts(config)) {
		alert_rules_clear(&config->flows.alerts);
		config->n_alerts = 0;
		on_kept("alerts take effect after a restart, as 'rtt' and 'drops' do",
			user);
	}
}

/* ---- Messages of the library ----------------------------------------------------- */

/* The entry that "NAME: ..." is about; its value may be in the rest of the message. */
static const struct conf_entry *find_conf_entry(const struct conf *conf,
						const struct option_name *name,
						const char *rest)
{
	const struct conf_entry *last = NULL;

	for (size_t i = 0; i < conf->n; i++) {
		const struct conf_entry *entry = &conf->entries[i];

		if (!entry->key || strcmp(entry->section, name->section) ||
		    strcmp(entry->key, name->key) || !*entry->value)
			continue;
		last = entry;
		if (strstr(rest, entry->value))
			return entry;
	}
	return last;
}

static void write_place(const struct conf_place *place, const char *rest,
			char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%s:%u:%u: %s", place->file, place->line,
		 place->column, rest + strspn(rest, " "));
}

bool service_config_place(const struct service_config *config,
			  const char *message, char *ret_text, size_t size)
{
	const char *rest;
	const struct option_name *name;
	const struct conf_entry *entry;
	unsigned int rule;
	int len = 0, alert;

	if (sscanf(message, "rules[%u]:%n", &rule, &len) == 1 && len &&
	    rule < config->n_filters) {
		write_place(&config->filters[rule].place, message + len,
			    ret_text, size);
		return true;
	}
	if (rules_place(&config->flows.rules, message, ret_text, size))
		return true;
	alert = alert_rules_place(&config->flows.alerts, message, &rest);
	if (alert >= 0 && (size_t)alert < config->n_alerts) {
		write_place(&config->alerts[alert].place, rest, ret_text, size);
		return true;
	}
	name = option_name_of(message, &rest);
	entry = name && name->key ? find_conf_entry(&config->conf, name, rest) :
				    NULL;
	if (!entry)
		return false;
	write_place(&entry->value_place, rest, ret_text, size);
	return true;
}
