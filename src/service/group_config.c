/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "base/options.h"
#include "base/util.h"
#include "service_config.h"

#include <netobs/networks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct conf_entry *find_group_key(const struct service_config *config,
					       const char *name, const char *key)
{
	const struct conf_entry *entry =
		conf_find(&config->conf, "group", name, key);

	return entry && *entry->value ? entry : NULL;
}

static void read_switch(struct service_config *config, const char *name,
			const char *key, bool *ret_value)
{
	const struct conf_entry *entry = find_group_key(config, name, key);
	const int value = entry ? service_keys_switch(entry->value) : *ret_value;

	if (value < 0)
		conf_complain(&config->conf, &entry->value_place,
			      "%s: '%s' is not yes or no", key, entry->value);
	else
		*ret_value = value;
}

/* A scrape writes the series of all groups, and 23 lines of each of their histograms. */
enum {
	ALL_SERIES_MAX = 20000,
	ALL_HISTOGRAMS_MAX = 5000,
	DEFAULT_SERIES = 500,
};

static uint32_t count_histograms(const struct service_group_config *group)
{
	return group->series * (uint32_t)__builtin_popcount(group->histograms);
}

/* @return whether @more is what makes the sum greater than @most: another one behind it is not reported again */
static bool exceeds(uint32_t before, uint32_t more, uint32_t most)
{
	return before <= most && before + more > most;
}

/* Check groups with metrics; other groups are in no scrape. */
static void check_all_series(struct service_config *config,
			     const struct conf_place *place,
			     const struct service_group_config *group)
{
	uint32_t series = 0, histograms = 0;

	for (size_t i = 0; i < config->n_groups; i++) {
		if (!config->groups[i].has_metrics)
			continue;
		series += config->groups[i].series;
		histograms += count_histograms(&config->groups[i]);
	}
	if (!group->has_metrics)
		return;
	if (exceeds(series, group->series, ALL_SERIES_MAX))
		conf_complain(&config->conf, place,
			      "series: all groups have %u, more than %d",
			      series + group->series, ALL_SERIES_MAX);
	else if (exceeds(histograms, count_histograms(group), ALL_HISTOGRAMS_MAX))
		conf_complain(
			&config->conf, place,
			"histograms: the series of all groups have %u, more than %d",
			histograms + count_histograms(group), ALL_HISTOGRAMS_MAX);
}

/* ---- Histograms ------------------------------------------------------------------ */

static const struct {
	const char *name;
	uint32_t bit;
} histogram_names[] = {
	{ "rtt", NETOBS_SERIES_RTT },
	{ "app_latency", NETOBS_SERIES_APP_LATENCY },
};

/* @return 0: no histogram has that name */
static uint32_t find_histogram(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(histogram_names); i++)
		if (strlen(histogram_names[i].name) == len &&
		    !memcmp(histogram_names[i].name, name, len))
			return histogram_names[i].bit;
	return 0;
}

static void read_histograms(struct service_config *config, const char *name,
			    uint32_t *ret_histograms)
{
	const struct conf_entry *entry =
		find_group_key(config, name, "histograms");
	const char *at = entry ? entry->value : "";

	for (at += strspn(at, ", "); *at; at += strspn(at, ", ")) {
		const size_t len = strcspn(at, ", ");
		const uint32_t bit = find_histogram(at, len);

		if (!bit)
			conf_complain(
				&config->conf, &entry->value_place,
				"histograms: there is no '%.*s'; there are %s, %s",
				(int)len, at, histogram_names[0].name,
				histogram_names[1].name);
		*ret_histograms |= bit;
		at += len;
	}
	if (*ret_histograms && !config->flows.rtt)
		conf_complain(&config->conf, &entry->value_place,
			      "histograms: it needs 'rtt = yes' in [capture]");
}

/* ---- Groups ---------------------------------------------------------------------- */

static void read_series(struct service_config *config, const char *name,
			uint32_t *ret_series)
{
	const struct conf_entry *entry = find_group_key(config, name, "series");
	uint64_t series;

	if (!entry)
		return;
	if (value_parse(VALUE_NUMBER, entry->value, 1, NETOBS_SERIES_MAX, &series))
		conf_complain(&config->conf, &entry->value_place,
			      "series: '%s' is not from 1 to %d", entry->value,
			      NETOBS_SERIES_MAX);
	else
		*ret_series = (uint32_t)series;
}

int group_config_open(const struct service_group_config *group,
		      struct netobs_networks *networks,
		      char (*error)[NETOBS_ERROR_MAX],
		      struct netobs_series **ret_series)
{
	const struct netobs_series_opts opts = { .sz = sizeof(opts),
						 .keys = group->by,
						 .name = group->name,
						 .max_series = group->series,
						 .histograms = group->histograms,
						 .networks = networks,
						 .error = error };

	return netobs_series_new(&opts, ret_series);
}

/* Keys that nothing would be known of, too. */
static void check_by(struct service_config *config, const struct conf_entry *by)
{
	struct netobs_group_keys keys = { .sz = sizeof(keys) };
	char why[NETOBS_ERROR_MAX];

	if (netobs_group_keys_parse(by->value, &keys, why, sizeof(why)) < 0)
		conf_complain(&config->conf, &by->value_place, "by: %s", why);
	else if (!keys.n)
		conf_complain(&config->conf, &by->value_place,
			      "by: 'flow' is no key of groups");
	else if (keys.flags & NETOBS_GROUP_PROCESS && !config->flows.process)
		conf_complain(&config->conf, &by->value_place,
			      "by: it needs 'process = yes' in [capture]");
}

static bool has_group_name(struct service_config *config,
			   const struct conf_entry *header)
{
	const size_t most = sizeof(((struct netobs_group_record *)NULL)->name);

	if (strlen(header->name) < most)
		return true;
	conf_complain(&config->conf, &header->place,
		      "its name has more than %zu bytes", most - 1);
	return false;
}

void group_config_add(struct service_config *config,
		      const struct conf_entry *header,
		      const struct conf_entry *by)
{
	const char *name = header->name;
	struct service_group_config group = { .name = name,
					      .series = DEFAULT_SERIES,
					      .has_metrics = true };

	if (!has_group_name(config, header))
		return;
	check_by(config, by);
	group.by = by->value;
	read_series(config, name, &group.series);
	read_histograms(config, name, &group.histograms);
	read_switch(config, name, "records", &group.has_records);
	read_switch(config, name, "metrics", &group.has_metrics);
	check_all_series(config, &header->place, &group);
	if (!group.has_records && !group.has_metrics)
		conf_complain(&config->conf, &header->place,
			      "[group \"%s\"] has neither records nor metrics",
			      name);
	config->groups[config->n_groups++] = group;
}

/* ---- Networks ------------------------------------------------------------------------ */

/* The last key of each network, which counts. */
static bool is_cidr(const struct conf *conf, const struct conf_entry *entry)
{
	return entry->key && *entry->value &&
	       !strcmp(entry->section, "network") &&
	       !strcmp(entry->key, "cidr") &&
	       conf_find(conf, "network", entry->name, "cidr") == entry;
}

/* The network that an error begins with. */
static uint32_t find_wrong(const struct netobs_network *list, uint32_t n,
			   const char *error)
{
	uint32_t wrong = 0;
	size_t most = 0;

	for (uint32_t i = 0; i < n; i++) {
		const size_t len = strlen(list[i].name);

		if (len >= most && !strncmp(error, list[i].name, len) &&
		    !strncmp(error + len, ": ", 2)) {
			most = len;
			wrong = i;
		}
	}
	return wrong;
}

static void make_networks(struct service_config *config,
			  const struct netobs_network *list, uint32_t n,
			  const struct conf_entry *const *entries)
{
	char error[NETOBS_ERROR_MAX] = "";

	if (netobs_networks_new(list, n, &error, &config->networks) < 0)
		conf_complain(&config->conf,
			      &entries[find_wrong(list, n, error)]->value_place,
			      "cidr: %s", error);
}

static void write_text(struct service_config *config,
		       const struct netobs_network *list, uint32_t n)
{
	size_t len;
	FILE *text = open_memstream(&config->networks_text, &len);

	if (!text)
		return;
	for (uint32_t i = 0; i < n; i++)
		fprintf(text, "%s=%s\n", list[i].name, list[i].cidr);
	if (fclose(text))
		free(TAKE_PTR(config->networks_text));
}

void network_config_take(struct service_config *config)
{
	const struct conf *conf = &config->conf;
	cleanup_free struct netobs_network *list =
		calloc(conf->n + 1, sizeof(*list));
	cleanup_free const struct conf_entry **entries =
		calloc(conf->n + 1, sizeof(*entries));
	uint32_t n = 0;

	for (size_t i = 0; list && entries && i < conf->n; i++) {
		const struct conf_entry *entry = &conf->entries[i];

		if (!is_cidr(conf, entry))
			continue;
		entries[n] = entry;
		list[n++] = (struct netobs_network){ sizeof(*list), entry->name,
						     entry->value };
	}
	if (!n)
		return;
	make_networks(config, list, n, entries);
	write_text(config, list, n);
}
