/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service_keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/util.h"
#include "base/value.h"

#include <netobs/persist.h>

_Static_assert(offsetof(struct service_config, flows) == 0,
	       "options of flows have offsets into struct flows_config");

/* ---- Keys ------------------------------------------------------------------------ */

const char *const service_actions[] = { "accept", "reject", NULL };
const char *const service_log_levels[] = { "error", "warning", "info", "debug",
					   NULL };

#define FIELD(name) offsetof(struct service_config, name)

/* Keys that are no options of flows. */
static const struct args_option own_options[] = {
	{ 0, "filter", ARGS_STRING, FIELD(filter), "FILTER", NULL, NULL },
	{ 0, "default-action", ARGS_CHOICE, FIELD(default_action),
	  "accept|reject", service_actions, NULL },
	{ 0, "persist", ARGS_SWITCH, FIELD(persist), NULL, NULL, NULL },
	{ 0, "persist-dir", ARGS_STRING, FIELD(persist_dir), "DIRECTORY", NULL,
	  NULL },
	{ 0, "log-level", ARGS_CHOICE, FIELD(log_level),
	  "error|warning|info|debug", service_log_levels, NULL },
	{ 0, "enabled", ARGS_SWITCH, FIELD(wants_sessions), NULL, NULL, NULL },
	{ 0, "sessions-interval", ARGS_SECONDS, FIELD(sessions.interval_ms),
	  "SECONDS", NULL, NULL },
	{ 0, "pid", ARGS_NUMBER32, FIELD(sessions.pid), "PID", NULL, NULL },
	{ 0, "comm", ARGS_STRING, FIELD(sessions.comm), "NAME", NULL, NULL },
	{ 0, "buffer", ARGS_BYTES, FIELD(sessions.buffer_bytes), "BYTES", NULL,
	  NULL },
	{ 0, "path", ARGS_STRING, FIELD(control.path), "PATH", NULL, NULL },
	{ 0, "group", ARGS_STRING, FIELD(control.group), "GROUP", NULL, NULL },
	{ 0, "mode", ARGS_STRING, FIELD(control.mode), "MODE", NULL, NULL },
	{ 0, "group-may-change", ARGS_SWITCH, FIELD(control.group_may_change),
	  NULL, NULL, NULL },
	{ 0 }
};

/* Each is an option, with an underscore for each hyphen. */
const struct service_key service_keys[] = {
	{ "capture", "interface", "", false, NULL },
	{ "capture", "exclude", "", false, NULL },
	{ "capture", "direction", "both", true, NULL },
	{ "capture", "attach", "auto", true, NULL },
	{ "capture", "attach_order", "first", true, NULL },
	{ "capture", "sampling", "1", false, NULL },
	{ "capture", "rtt", "no", true, NULL },
	{ "capture", "process", "no", true, NULL },
	{ "capture", "filter", "", false, NULL },
	{ "capture", "rules", "", false, NULL },
	{ "capture", "default_action", "", false, NULL },
	{ "flows", "interval", "5", false, NULL },
	{ "flows", "active_timeout", "", false, NULL },
	{ "flows", "idle_timeout", "15", false, NULL },
	{ "flows", "per_interface", "no", true, NULL },
	{ "flows", "timestamps", "coarse", true, NULL },
	{ "flows", "min_bytes", "", true, NULL },
	{ "sessions", "enabled", "no", false, NULL },
	{ "sessions", "interval", "", false, "sessions-interval" },
	{ "sessions", "pid", "", false, NULL },
	{ "sessions", "comm", "", false, NULL },
	{ "sessions", "buffer", "4M", false, NULL },
	{ "limits", "max_flows", "1048576", true, NULL },
	{ "limits", "max_memory", "", true, NULL },
	{ "limits", "max_connections", "65536", true, NULL },
	{ "metrics", "listen", "", true, "metrics" },
	{ "metrics", "listen_any", "no", true, "metrics-listen-any" },
	{ "metrics", "tls_cert", "", true, "metrics-tls-cert" },
	{ "metrics", "tls_key", "", true, "metrics-tls-key" },
	{ "metrics", "tls_ca", "", true, "metrics-tls-ca" },
	{ "metrics", "textfile", "", true, "metrics-textfile" },
	{ "service", "log_level", "warning", false, NULL },
	{ "service", "persist", "no", true, NULL },
	{ "service", "persist_dir", NETOBS_PERSIST_DIR, true, NULL },
	{ "control", "path", CONTROL_SOCKET, true, NULL },
	{ "control", "group", CONTROL_GROUP, true, NULL },
	{ "control", "mode", "0660", true, NULL },
	{ "control", "group_may_change", "no", true, NULL },
	{ 0 }
};

/* Sections with a name, and their keys; a sink has those of its kind. */
static const struct named_section {
	const char *section;
	const char *const *keys; /* NULL: any */
} named_sections[] = {
	{ "filter", (const char *const[]){ "match", "action", "sample", NULL } },
	{ "alert", (const char *const[]){ "rule", NULL } },
	{ "sink", NULL },
};

/* @return NULL: sections of that kind have no name */
static const struct named_section *find_named(const char *section)
{
	for (size_t i = 0; i < ARRAY_SIZE(named_sections); i++)
		if (!strcmp(section, named_sections[i].section))
			return &named_sections[i];
	return NULL;
}

const struct args_option *service_key_option(const struct service_key *key)
{
	const struct args_option *own = own_options;
	char name[32];

	snprintf(name, sizeof(name), "%s", key->option ?: key->name);
	for (char *at = name; (at = strchr(at, '_'));)
		*at = '-';
	while (own->name && strcmp(own->name, name))
		own++;
	return own->name ? own : flows_config_find(name);
}

static const struct service_key *find_key(const char *section, const char *name)
{
	for (const struct service_key *key = service_keys; key->name; key++)
		if ((!section || !strcmp(key->section, section)) &&
		    !strcmp(key->name, name))
			return key;
	return NULL;
}

/* ---- Words that are none --------------------------------------------------------- */

static void complain_word(struct conf *conf, const struct conf_place *place,
			  const char *what, const struct suggestion *suggestion)
{
	const char *best = suggestion_best(suggestion);

	conf_complain(conf, place, "there is no %s '%s'%s%s%s", what,
		      suggestion->typed, best ? "; did you mean '" : "",
		      best ?: "", best ? "'?" : "");
}

/* @return whether there is such a section */
static bool check_section(struct conf *conf, const struct conf_entry *entry)
{
	const char *word = entry->section;
	struct suggestion suggestion = suggestion_for(word, strlen(word));
	const bool is_named = find_named(word);
	bool is_known = is_named;

	for (size_t i = 0; i < ARRAY_SIZE(named_sections); i++)
		suggestion_offer(&suggestion, named_sections[i].section);
	for (const struct service_key *key = service_keys; key->name; key++) {
		is_known |= !strcmp(word, key->section);
		suggestion_offer(&suggestion, key->section);
	}
	if (entry->key) /* its header has been reported */
		return is_known && is_named == (*entry->name != '\0');
	if (!is_known)
		complain_word(conf, &entry->place, "section", &suggestion);
	else if (is_named && !*entry->name)
		conf_complain(conf, &entry->place,
			      "it needs a name: [%s \"NAME\"]", word);
	else if (!is_named && *entry->name)
		conf_complain(conf, &entry->place, "[%s] has no name", word);
	else
		return true;
	return false;
}

static void complain_key(struct conf *conf, const struct conf_entry *entry)
{
	struct suggestion suggestion =
		suggestion_for(entry->key, strlen(entry->key));
	const struct service_key *elsewhere = find_key(NULL, entry->key);
	const struct named_section *named = find_named(entry->section);

	if (elsewhere) {
		conf_complain(conf, &entry->place, "'%s' belongs to [%s]",
			      entry->key, elsewhere->section);
		return;
	}
	for (const struct service_key *key = service_keys; key->name; key++)
		if (!strcmp(key->section, entry->section))
			suggestion_offer(&suggestion, key->name);
	for (const char *const *key = named ? named->keys : NULL; key && *key;
	     key++)
		suggestion_offer(&suggestion, *key);
	complain_word(conf, &entry->place, "key", &suggestion);
}

/* ---- Values ---------------------------------------------------------------------- */

size_t service_key_size(enum args_type type)
{
	switch (type) {
	case ARGS_SWITCH:
		return sizeof(bool);
	case ARGS_STRING:
		return sizeof(char *);
	case ARGS_NUMBER:
	case ARGS_BYTES:
		return sizeof(uint64_t);
	default:
		return sizeof(uint32_t);
	}
}

void service_keys_default(struct service_config *config)
{
	*config = (struct service_config){
		.flows = { .direction = -1,
			   .timestamps = -1,
			   .attach = -1,
			   .attach_order = -1,
			   .conns_sort = -1 },
		.default_action = -1,
		.sessions.buffer_bytes = 4 << 20, /* the library's default */
		.log_level = -1,
	};
}

static void reset_field(struct service_config *config,
			const struct args_option *option)
{
	char *field = (char *)config + option->offset;
	struct service_config pristine;

	if (option->type == ARGS_LIST) {
		args_list_clear((struct args_list *)field);
		return;
	}
	service_keys_default(&pristine);
	memcpy(field, (char *)&pristine + option->offset,
	       service_key_size(option->type));
}

static int store_switch(const struct args_option *option, const char *value,
			void *field)
{
	static const char *const words[] = { "no",   "yes", "false",
					     "true", "off", "on",
					     "0",    "1",   NULL };
	int choice = value_choice(words, value);

	if (choice < 0)
		return choice;
	if (option->type == ARGS_MODE)
		*(int *)field = choice % 2;
	else
		*(bool *)field = choice % 2;
	return 0;
}

/* Without the other keys, which have places of their own. */
static bool check_sessions(const struct service_config *config,
			   const char *name, char *ret_why, size_t size)
{
	struct session_choice choice = { 0 };

	if (!strcmp(name, "interval"))
		choice.interval_ms = config->sessions.interval_ms;
	else if (!strcmp(name, "buffer"))
		choice.buffer_bytes = config->sessions.buffer_bytes;
	return session_choice_check(&choice, ret_why, size);
}

/* What an option's type does not say. @return whether it is right */
static bool check_value(struct service_config *config,
			const struct service_key *key, const char *value,
			char *ret_why, size_t size)
{
	if (!strcmp(key->section, "sessions"))
		return check_sessions(config, key->name, ret_why, size);
	if (!strcmp(key->name, "interface") || !strcmp(key->name, "exclude"))
		return flows_check_interface(value, ret_why, size);
	if (!strcmp(key->name, "interval"))
		return flows_check_interval(config->flows.interval_ms, ret_why,
					    size);
	if (!strcmp(key->name, "sampling"))
		return flows_parse_sampling(&config->flows, ret_why, size);
	return true;
}

static void store_value(struct service_config *config,
			const struct service_key *key,
			const struct conf_entry *entry)
{
	const struct args_option *option = service_key_option(key);
	const bool is_switch = option->type == ARGS_SWITCH ||
			       option->type == ARGS_MODE;
	const struct conf_place place = conf_value_place(entry);
	char why[320];
	int r;

	if (!*entry->value) {
		reset_field(config, option);
		return;
	}
	r = is_switch ? store_switch(option, entry->value,
				     (char *)config + option->offset) :
			args_store(option, entry->value, config);
	if (r == -ENOMEM)
		conf_complain(&config->conf, &place, "out of memory");
	else if (r < 0)
		conf_complain(&config->conf, &place, "%s: '%s' is not %s",
			      key->name, entry->value,
			      is_switch ? "yes or no" : args_expectation(option));
	else if (!check_value(config, key, entry->value, why, sizeof(why)))
		conf_complain(&config->conf, &place, "%s: %s", key->name, why);
}

/* Those of named sections are read with their section. */
static bool is_key_of(const struct named_section *named, const char *name)
{
	return !named->keys || value_choice(named->keys, name) >= 0;
}

void service_keys_take(struct service_config *config,
		       const struct conf_entry *entry)
{
	const struct named_section *named = find_named(entry->section);
	const struct service_key *key;

	if (!check_section(&config->conf, entry) || !entry->key ||
	    (named && is_key_of(named, entry->key)))
		return;
	key = find_key(entry->section, entry->key);
	if (key)
		store_value(config, key, entry);
	else
		complain_key(&config->conf, entry);
}
