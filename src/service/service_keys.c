/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "diagnoses.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <netobs/persist.h>

#include "base/options.h"
#include "base/util.h"

/* ---- Keys ------------------------------------------------------------------------ */

static bool check_interface(struct service_config *config, const char *value,
			    char *ret_why, size_t size)
{
	(void)config;
	return flows_check_interface(value, ret_why, size);
}

static bool check_interval(struct service_config *config, const char *value,
			   char *ret_why, size_t size)
{
	(void)value;
	return flows_check_interval(config->flows.opts.interval_ms, ret_why,
				    size);
}

static bool check_sampling(struct service_config *config, const char *value,
			   char *ret_why, size_t size)
{
	(void)value;
	return flows_parse_sampling(&config->flows, ret_why, size);
}

/* Each key is checked alone, so that a message has the position of its key. */
static bool check_sessions_interval(struct service_config *config,
				    const char *value, char *ret_why, size_t size)
{
	const struct session_choice choice = {
		.interval_ms = config->sessions.interval_ms
	};

	(void)value;
	return session_choice_check(&choice, ret_why, size);
}

static bool check_sessions_buffer(struct service_config *config,
				  const char *value, char *ret_why, size_t size)
{
	const struct session_choice choice = {
		.buffer_bytes = config->sessions.buffer_bytes
	};

	(void)value;
	return session_choice_check(&choice, ret_why, size);
}

static bool check_trace_connections(struct service_config *config,
				    const char *value, char *ret_why, size_t size)
{
	(void)value;
	snprintf(ret_why, size, "it is more than %d", TRACE_CONNECTIONS_MAX);
	return config->trace.max_connections <= TRACE_CONNECTIONS_MAX;
}

static bool check_diagnose_for(struct service_config *config, const char *value,
			       char *ret_why, size_t size)
{
	const uint32_t ms = config->diagnose.for_ms;

	(void)value;
	snprintf(ret_why, size, "it is not from 1s to 1m");
	return ms >= 1000 && ms <= 60000;
}

static bool check_diagnose_max(struct service_config *config, const char *value,
			       char *ret_why, size_t size)
{
	(void)value;
	snprintf(ret_why, size, "it is more than 64");
	return config->diagnose.max <= 64;
}

static bool check_norms(struct service_config *config, const char *value,
			char *ret_why, size_t size)
{
	return !norms_read(&config->diagnose.norms, value, ret_why, size);
}

#define CHECK_capture_interface , check_interface
#define CHECK_capture_exclude , check_interface
#define CHECK_capture_sampling , check_sampling
#define CHECK_flows_interval , check_interval
#define CHECK_sessions_interval , check_sessions_interval
#define CHECK_sessions_buffer , check_sessions_buffer
#define CHECK_trace_max_connections , check_trace_connections
#define CHECK_diagnose_for , check_diagnose_for
#define CHECK_diagnose_norms , check_norms
#define CHECK_diagnose_max , check_diagnose_max

#define IS_FIXED_live false
#define IS_FIXED_restart true

#define AT(member) offsetof(struct service_config, member)
#define AT_interfaces(member) AT(flows.member)
#define AT_packets(member) AT(flows.member)
#define AT_sessions(member) AT(sessions.member)
#define AT_traces(member) AT(trace.member)
#define AT_own(member) AT(member)

const struct service_key service_keys[] = {
#define OPTION(...)
#define OPTION_KEY(section, key, change, letter, name, type, member, \
		   otherwise, verbs, help)                           \
	KEY(section, key, change, type, member, otherwise)
#define KEY(section, key, change, type, member, otherwise)           \
	{ #section,                                                  \
	  ARGS_OPTION("", #key, type, AT_##member, ARGS_SOURCE_NONE, \
		      otherwise, ""),                                \
	  IS_FIXED_##change, OPTION_SECOND(CHECK_##section##_##key, NULL, ) },
#include "catalogue/options.def"
	{ 0 }
};

/* Sections with a name, and their keys; a sink has those of its kind. */
static const struct named_section {
	const char *section;
	const char *const *keys; /* NULL: any */
} named_sections[] = {
	{ "filter", (const char *const[]){ "match", "action", "sample", NULL } },
	{ "alert", (const char *const[]){ "rule", "trace", NULL } },
	{ "group", (const char *const[]){ "by", "series", "records", "metrics",
					  "histograms", NULL } },
	{ "network", (const char *const[]){ "cidr", NULL } },
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

static const struct service_key *find_key(const char *section, const char *name)
{
	for (const struct service_key *key = service_keys; key->section; key++)
		if ((!section || !strcmp(key->section, section)) &&
		    !strcmp(key->option.name, name))
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
	for (const struct service_key *key = service_keys; key->section; key++) {
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
	for (const struct service_key *key = service_keys; key->section; key++)
		if (!strcmp(key->section, entry->section))
			suggestion_offer(&suggestion, key->option.name);
	for (const char *const *key = named ? named->keys : NULL; key && *key;
	     key++)
		suggestion_offer(&suggestion, *key);
	if (!strcmp(entry->section, "host")) {
		conf_complain(
			conf, &entry->place,
			"there is no key '%s': keys of [host] are container_names, container_root and field.NAME",
			entry->key);
		return;
	}
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
		.default_action = -1,
		.sessions.buffer_bytes = 4 << 20, /* the library's default */
		.log_level = -1,
		.diagnose = { .for_ms = 5000, .max = 4 },
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

int service_keys_switch(const char *value)
{
	static const char *const words[] = { "no",   "yes", "false",
					     "true", "off", "on",
					     "0",    "1",   NULL };
	const int choice = value_choice(words, value);

	return choice < 0 ? choice : choice % 2;
}

static int store_switch(const char *value, bool *field)
{
	const int choice = service_keys_switch(value);

	if (choice < 0)
		return choice;
	*field = choice;
	return 0;
}

static void store_value(struct service_config *config,
			const struct service_key *key,
			const struct conf_entry *entry)
{
	const struct args_option *option = &key->option;
	const bool is_switch = option->type == ARGS_SWITCH;
	const struct conf_place *place = &entry->value_place;
	char why[320];
	int r;

	if (!*entry->value) {
		reset_field(config, option);
		return;
	}
	r = is_switch ? store_switch(entry->value,
				     (bool *)((char *)config + option->offset)) :
			args_store(option, entry->value, config);
	if (r == -ENOMEM)
		conf_complain(&config->conf, place, "out of memory");
	else if (r < 0)
		conf_complain(&config->conf, place, "%s: '%s' is not %s",
			      option->name, entry->value,
			      is_switch ? "yes or no" : args_expectation(option));
	else if (key->check && !key->check(config, entry->value, why, sizeof(why)))
		conf_complain(&config->conf, place, "%s: %s", option->name, why);
}

/* Keys of named sections are read with their section. */
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
	    sink_spec_is_host_field(entry) ||
	    (named && is_key_of(named, entry->key)))
		return;
	key = find_key(entry->section, entry->key);
	if (key)
		store_value(config, key, entry);
	else
		complain_key(&config->conf, entry);
}
