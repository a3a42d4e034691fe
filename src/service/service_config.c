/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <netobs/sink.h>

#include "base/options.h"
#include "base/util.h"

/* ---- Filters --------------------------------------------------------------------- */

/* @return why libpcap refuses it; NULL: it does not */
static const char *refuse_expression(const char *expression,
				     char (*error)[NETOBS_ERROR_MAX])
{
	NETOBS_OPTS(netobs_opts, opts);
	struct netobs *ctx;
	int r;

	opts.filter = expression;
	opts.error = error;
	r = netobs_new(&opts, &ctx);
	if (r == 0)
		netobs_free(ctx);
	return r == 0 ? NULL : *error;
}

static void check_expression(struct service_config *config,
			     const struct conf_entry *entry)
{
	char error[NETOBS_ERROR_MAX];
	const char *why = config->leaves_filters ?
				  NULL :
				  refuse_expression(entry->value, &error);

	if (why)
		conf_complain(&config->conf, &entry->value_place, "%s", why);
}

static int parse_action(struct conf *conf, const struct conf_entry *entry)
{
	int choice = value_choice(ARGS_WORDS(CHOICES_actions(OPTION_COMMA)),
				  entry->value);

	if (choice < 0)
		conf_complain(conf, &entry->value_place,
			      "action: '%s' is not accept|reject", entry->value);
	return choice < 0 ? choice : NETOBS_ACCEPT + choice;
}

static void parse_sample(struct conf *conf, const struct conf_entry *entry,
			 struct netobs_rule *rule)
{
	if (!*entry->value)
		return; /* a drop-in has removed it */
	if (!rules_parse_sample(entry->value, rule))
		conf_complain(
			conf, &entry->value_place,
			"sample: '%s' is not 1:N or flow:N, with a number from 1 to 4294967295",
			entry->value);
	else if (rule->action == NETOBS_REJECT)
		conf_complain(conf, &entry->value_place,
			      "sample: packets that are rejected are not sampled");
}

static void add_filter(struct service_config *config,
		       const struct conf_entry *header,
		       const struct conf_entry *match)
{
	const char *name = header->name;
	const struct conf_entry *action =
		conf_find(&config->conf, "filter", name, "action");
	const struct conf_entry *sample =
		conf_find(&config->conf, "filter", name, "sample");
	struct rules *rules = &config->flows.rules;
	struct netobs_rule rule = { .sz = sizeof(rule) };

	if (!action || !*action->value) {
		conf_complain(&config->conf, &header->place,
			      "[filter \"%s\"] needs 'action'", name);
		return;
	}
	check_expression(config, match);
	config->filters[config->n_filters++] =
		(struct service_item){ .name = name, .place = match->value_place };
	rule.filter = strdup(match->value);
	rule.action = (enum netobs_action)parse_action(&config->conf, action);
	if (sample)
		parse_sample(&config->conf, sample, &rule);
	rules->list[rules->n++] = rule;
}

/* Filters of rules exclude a file of rules, and a filter. */
static void check_filters(struct service_config *config)
{
	const struct conf_entry *filter =
		conf_find(&config->conf, "capture", "", "filter");
	const struct conf_entry *rules =
		conf_find(&config->conf, "capture", "", "rules");
	const struct conf_entry *action =
		conf_find(&config->conf, "capture", "", "default_action");
	struct conf *conf = &config->conf;

	if (config->n_filters && config->default_action < 0)
		conf_complain(conf, &config->filters[0].place,
			      "with filters, [capture] needs 'default_action'");
	if (config->default_action >= 0 && !config->n_filters)
		conf_complain(
			conf, &action->place,
			"without [filter \"NAME\"], nothing uses default_action");
	if (config->filter && config->flows.rules_path)
		conf_complain(conf, &filter->place,
			      "filter and rules cannot be combined");
	else if (config->n_filters && (config->filter || config->flows.rules_path))
		conf_complain(conf,
			      config->filter ? &filter->place : &rules->place,
			      "it cannot be combined with [filter \"%s\"]",
			      config->filters[0].name);
}

static void take_filters(struct service_config *config)
{
	struct flows_config *flows = &config->flows;
	struct conf *conf = &config->conf;
	char why[512];

	check_filters(config);
	if (config->n_filters) {
		flows->rules.path = config->filters[0].place.file;
		flows->rules.default_action = (enum netobs_action)(
			NETOBS_ACCEPT + config->default_action);
	} else if (flows->rules_path &&
		   !rules_read(flows->rules_path, false, &flows->rules, why,
			       sizeof(why))) {
		conf_complain(conf,
			      &conf_find(conf, "capture", "", "rules")->value_place,
			      "%s", why);
	}
	if (!config->filter)
		return;
	check_expression(config, conf_find(conf, "capture", "", "filter"));
	flows->filter = strdup(config->filter);
}

/* ---- Alerts ---------------------------------------------------------------------- */

static void check_rule(struct conf *conf, const struct conf_entry *entry)
{
	char why[640];

	if (netobs_alert_rule_check(entry->value, why, sizeof(why)) < 0)
		conf_complain(conf, &entry->value_place, "rule: %s", why);
}

/* @return the time for which connections that break the rule are traced */
static uint32_t read_trace_ms(struct service_config *config, const char *name)
{
	static const struct args_option option =
		ARGS_OPTION("", "trace", seconds, 0, ARGS_SOURCE_NONE, "", "");
	const struct conf_entry *entry =
		conf_find(&config->conf, "alert", name, "trace");
	uint32_t ms = 0;

	if (entry && *entry->value && args_store(&option, entry->value, &ms))
		conf_complain(&config->conf, &entry->value_place,
			      "trace: '%s' is not %s", entry->value,
			      args_expectation(&option));
	return ms;
}

static void add_alert(struct service_config *config,
		      const struct conf_entry *header,
		      const struct conf_entry *rule)
{
	const char *name = header->name;
	uint32_t trace_ms;

	if (strlen(name) >= sizeof(((struct netobs_alert *)NULL)->name)) {
		conf_complain(&config->conf, &header->place,
			      "its name has more than 63 bytes");
		return;
	}
	check_rule(&config->conf, rule);
	trace_ms = read_trace_ms(config, name);
	if (alert_rules_add(&config->flows.alerts, name, rule->value) < 0) {
		conf_complain(&config->conf, &header->place, "out of memory");
		return;
	}
	config->alert_trace_ms[config->n_alerts] = trace_ms;
	config->alerts[config->n_alerts++] =
		(struct service_item){ .name = name, .place = rule->value_place };
}

static void check_alerts(struct service_config *config)
{
	const struct flows_config *flows = &config->flows;

	for (size_t i = 0; i < config->n_alerts; i++) {
		const bool is_of_drops =
			alert_rule_needs_drops(flows->alerts.list[i].rule);

		if (is_of_drops ? flows->drops : flows->rtt)
			continue;
		conf_complain(
			&config->conf, &config->alerts[i].place,
			is_of_drops ?
				"alerts about drops need 'drops = yes' in [capture]" :
				"alerts need 'rtt = yes' in [capture]");
		return;
	}
}

/* ---- Sinks ----------------------------------------------------------------------- */

static bool has_same_option(const char *a, const char *b, const char *name)
{
	size_t len;

	a = output_spec_option(a, name);
	b = output_spec_option(b, name);
	len = a ? strcspn(a, "&") : 0;
	return a && b && strcspn(b, "&") == len && !memcmp(a, b, len);
}

/* Only one sink may write to such a file. */
static bool is_own_file(const char *spec)
{
	return output_spec_option(spec, "rotate.") ||
	       !strncmp(spec, "ipfix:file:", strlen("ipfix:file:"));
}

bool service_specs_share_spool(const char *a, const char *b)
{
	return has_same_option(a, b, "spool=disk");
}

bool service_specs_collide(const char *a, const char *b)
{
	const size_t target = strcspn(a, "?");

	if (service_specs_share_spool(a, b))
		return true;
	return is_own_file(a) && is_own_file(b) && strcspn(b, "?") == target &&
	       !memcmp(a, b, target);
}

/* Lines of two sinks would be there twice, or within each other. */
static bool have_same_lines(const char *a, const char *b)
{
	const size_t target = strcspn(a, "?");
	cleanup_free char *path = strndup(a, target);
	struct stat found;

	if (!path || strncmp(a, "json:", strlen("json:")) != 0 ||
	    strcspn(b, "?") != target || memcmp(a, b, target) != 0)
		return false;
	/* Pipes and devices have any number of writers; sockets and servers are no paths. */
	if (stat(path + strlen("json:"), &found))
		return !strchr(path + strlen("json:"), ':');
	return S_ISREG(found.st_mode);
}

static bool is_same_place(const struct conf_place *a, const struct conf_place *b)
{
	return a->file == b->file && a->line == b->line && a->column == b->column;
}

static void check_spec(struct service_config *config,
		       const struct conf_entry *output, const char *spec)
{
	char error[NETOBS_ERROR_MAX] = "";
	const NETOBS_OPTS(netobs_sink_opts, opts, .error = &error);
	struct conf_place place = output->value_place;

	if (strcspn(spec, ":?") == 5 && !strncmp(spec, "table", 5))
		conf_complain(&config->conf, &place,
			      "a table is for people: see netobsctl-flows(8)");
	else if (output_refuse(spec, NULL, error, sizeof(error)))
		conf_complain(&config->conf, &place, "'%s': %s", output->value,
			      error);
	else if (netobs_sink_check(spec, &opts) < 0) {
		place = sink_spec_place(&config->conf, output, error);
		if (!is_same_place(&place, &config->wrong_host))
			conf_complain(&config->conf, &place, "%s", error);
	}
}

static bool has_stdout(const struct service_config *config)
{
	for (size_t i = 0; i < config->n_sinks; i++)
		if (output_of(config->sinks[i].text).is_stdout)
			return true;
	return false;
}

static void add_sink_section(struct service_config *config,
			     const struct conf_entry *header,
			     const struct conf_entry *output)
{
	char *spec = sink_spec_make(&config->conf, output);

	if (!spec) {
		conf_complain(&config->conf, &header->place, "out of memory");
		return;
	}
	check_spec(config, output, spec);
	if (output_of(spec).is_stdout && has_stdout(config))
		conf_complain(&config->conf, &output->place,
			      "only one sink can write to standard output");
	for (size_t i = 0; i < config->n_sinks; i++)
		if (service_specs_collide(config->sinks[i].text, spec) ||
		    have_same_lines(config->sinks[i].text, spec))
			conf_complain(&config->conf, &output->place,
				      "[sink \"%s\"] has the same file or spool",
				      config->sinks[i].name);
	config->sinks[config->n_sinks++] =
		(struct service_item){ header->name, spec, output->value_place };
}

/* ---- All of it ------------------------------------------------------------------- */

/* The first header with its name. */
static bool is_first_header(const struct conf *conf,
			    const struct conf_entry *header)
{
	for (const struct conf_entry *entry = conf->entries; entry < header;
	     entry++)
		if (!entry->key && !strcmp(entry->section, header->section) &&
		    !strcmp(entry->name, header->name))
			return false;
	return true;
}

static const struct item_kind {
	const char *section;
	const char *key; /* that each needs; a drop-in removes an item by an empty one */
	size_t count; /* offset of how many there are */
	size_t most;
	void (*add)(struct service_config *config,
		    const struct conf_entry *header,
		    const struct conf_entry *needed);
} item_kinds[] = {
	{ "filter", "match", offsetof(struct service_config, n_filters),
	  NETOBS_RULES_MAX, add_filter },
	{ "alert", "rule", offsetof(struct service_config, n_alerts),
	  NETOBS_ALERT_RULES_MAX, add_alert },
	{ "group", "by", offsetof(struct service_config, n_groups),
	  SERVICE_GROUPS_MAX, group_config_add },
	{ "sink", "output", offsetof(struct service_config, n_sinks),
	  SERVICE_SINKS_MAX, add_sink_section },
};

static void take_item(struct service_config *config, const struct item_kind *kind,
		      const struct conf_entry *header)
{
	const size_t n = *(const size_t *)((const char *)config + kind->count);
	const struct conf_entry *needed =
		conf_find(&config->conf, kind->section, header->name, kind->key);

	if (!needed)
		conf_complain(&config->conf, &header->place,
			      "[%s \"%s\"] needs '%s'", kind->section,
			      header->name, kind->key);
	else if (*needed->value && n == kind->most)
		conf_complain(&config->conf, &header->place,
			      "there are more than %zu %ss", kind->most,
			      kind->section);
	else if (*needed->value)
		kind->add(config, header, needed);
}

static void take_items(struct service_config *config)
{
	const struct conf *conf = &config->conf;

	for (size_t i = 0; i < conf->n; i++) {
		const struct conf_entry *entry = &conf->entries[i];

		if (entry->key || !*entry->name || !is_first_header(conf, entry))
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(item_kinds); k++)
			if (!strcmp(entry->section, item_kinds[k].section))
				take_item(config, &item_kinds[k], entry);
	}
}

/* Rules of a context that is never started. */
static void ignore_alert(const struct netobs_record *record, void *user)
{
	(void)record;
	(void)user;
}

/* @return whether the library takes all of it; if not, @error says why */
static bool try_whole(const struct flows_config *flows,
		      char (*error)[NETOBS_ERROR_MAX])
{
	struct netobs *ctx;
	NETOBS_OPTS(netobs_opts, opts);
	int r;

	flows_config_fill(flows, &opts);
	opts.on_record = ignore_alert;
	opts.records = 1 << NETOBS_RECORD_ALERT;
	opts.error = error;
	if (netobs_new(&opts, &ctx) < 0)
		return false;
	r = flows->alerts.n ?
		    netobs_alerts_set(ctx, flows->alerts.list, flows->alerts.n) :
		    0;
	if (r < 0)
		snprintf(*error, sizeof(*error), "%s", netobs_last_error(ctx));
	netobs_free(ctx);
	return r == 0;
}

/* Have the library check the rest, such as regular expressions. */
static void check_whole(struct service_config *config, const char *file)
{
	const struct conf_place place = { .file = file };
	char error[NETOBS_ERROR_MAX], text[1024];

	if (try_whole(&config->flows, &error))
		return;
	if (service_config_place(config, error, text, sizeof(text))) {
		config->conf.n_errors++;
		config->conf.on_error(text, config->conf.user);
	} else {
		conf_complain(&config->conf, &place, "%s", error);
	}
}

static void check_metrics(struct service_config *config)
{
	const struct metrics_config *metrics = &config->flows.metrics;
	const struct conf_entry *entry =
		conf_find(&config->conf, "metrics", "", "listen");
	char why[320];

	if (entry && !metrics_check(metrics, why, sizeof(why)))
		conf_complain(&config->conf, &entry->place, "%s", why);
}

static void check_control(struct service_config *config)
{
	const char *wrong = control_refuse(config->control);
	const struct conf_entry *entry =
		conf_find(&config->conf, "control", "", "path");

	if (wrong)
		conf_complain(&config->conf, &entry->value_place, "%s", wrong);
}

/* Checked also if no sink uses them. */
static void check_host(struct service_config *config)
{
	struct conf_entry output = { .name = "", .value = "json:/dev/null" };
	cleanup_free char *spec = NULL;
	char error[NETOBS_ERROR_MAX] = "";
	const NETOBS_OPTS(netobs_sink_opts, opts, .error = &error);

	for (size_t i = 0; i < config->conf.n; i++)
		if (sink_spec_is_host_field(&config->conf.entries[i]))
			output.value_place = config->conf.entries[i].place;
	if (!output.value_place.file)
		return;
	spec = sink_spec_make(&config->conf, &output);
	if (!spec || netobs_sink_check(spec, &opts) == 0)
		return;
	config->wrong_host = sink_spec_place(&config->conf, &output, error);
	conf_complain(&config->conf, &config->wrong_host, "%s", error);
}

static unsigned int interpret_conf(struct service_config *config, const char *file)
{
	const struct conf_place place = { .file = file };
	struct conf *conf = &config->conf;

	for (size_t i = 0; i < conf->n; i++)
		service_keys_take(config, &conf->entries[i]);
	check_host(config);
	network_config_take(config);
	take_items(config);
	take_filters(config);
	check_alerts(config);
	check_metrics(config);
	check_control(config);
	if (!conf->n_errors && !config->n_sinks &&
	    !config->flows.metrics.listen && !config->flows.metrics.textfile)
		conf_complain(conf, &place,
			      "there is no [sink \"NAME\"] with an output");
	if (!conf->n_errors && !config->leaves_filters)
		check_whole(config, file);
	return conf->n_errors;
}

unsigned int service_config_read(struct service_config *ret_config,
				 const char *path, bool leaves_filters,
				 void (*on_error)(const char *line, void *user),
				 void *user)
{
	const char *file = path ?: SERVICE_CONFIG_FILE;

	service_keys_default(ret_config);
	ret_config->leaves_filters = leaves_filters;
	ret_config->conf.on_error = on_error;
	ret_config->conf.user = user;
	conf_read(&ret_config->conf, file);
	return interpret_conf(ret_config, file);
}

void service_config_clear(struct service_config *config)
{
	flows_config_clear(&config->flows);
	for (size_t i = 0; i < config->n_sinks; i++)
		free(config->sinks[i].text);
	netobs_networks_free(config->networks);
	free(config->networks_text);
	free(config->diagnose.norms.list);
	conf_clear(&config->conf);
	service_keys_default(config);
}
