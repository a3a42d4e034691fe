/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "service.h"

#include "base/json.h"
#include "base/util.h"

#include <errno.h>
#include <netobs/netobs.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_group(struct service_group *group)
{
	netobs_series_free(group->series);
	free(group->name);
	free(group->by);
	free(group->networks);
	*group = (struct service_group){ 0 };
}

static bool is_same_group(const struct service_group *group,
			  const struct service_group_config *config,
			  const char *networks)
{
	return group->series && !strcmp(group->name, config->name) &&
	       !strcmp(group->by, config->by) && group->most == config->series &&
	       group->histograms == config->histograms &&
	       (!strstr(group->by, "network") ||
		!strcmp(group->networks, networks));
}

/* Take a group over from those before, or make a new one. */
static int take_group(struct service_groups *before,
		      const struct service_config *all,
		      const struct service_group_config *config,
		      struct service_group *group)
{
	const char *networks = all->networks_text ?: "";
	char error[NETOBS_ERROR_MAX];

	for (size_t i = 0; i < before->n; i++) {
		if (!is_same_group(&before->groups[i], config, networks))
			continue;
		*group = before->groups[i];
		before->groups[i] = (struct service_group){ 0 };
		return 0;
	}
	*group = (struct service_group){ .name = strdup(config->name),
					 .by = strdup(config->by),
					 .networks = strdup(networks),
					 .most = config->series,
					 .histograms = config->histograms };
	if (!group->name || !group->by || !group->networks)
		return -ENOMEM;
	return group_config_open(config, all->networks, &error, &group->series);
}

static uint32_t counts_of(const struct service_config *config)
{
	return (config->flows.rtt ? METRICS_GROUP_TCP : 0U) |
	       (config->flows.drops ? METRICS_GROUP_DROPS : 0U) |
	       (config->wants_sessions ? METRICS_GROUP_CONNECTIONS : 0U);
}

static void add_metrics(struct service_groups *groups,
			const struct service_group *group)
{
	struct metrics_group *metrics = &groups->metrics[groups->n_metrics++];

	*metrics = (struct metrics_group){ .name = group->name,
					   .series = group->series,
					   .counts = group->counts,
					   .keys.sz = sizeof(metrics->keys) };
	netobs_group_keys_parse(group->by, &metrics->keys, NULL, 0);
}

void service_groups_interval(struct service_groups *groups, int64_t time_ns,
			     void (*take)(const struct netobs_record *record,
					  void *user),
			     void *user)
{
	for (size_t i = 0; i < groups->n; i++) {
		struct service_group *group = &groups->groups[i];

		if (!group->series)
			continue;
		netobs_series_end_interval(group->series, time_ns,
					   group->has_records ? take : NULL,
					   user);
	}
}

int service_groups_commit(struct service_groups *groups,
			  const struct service_config *config, int64_t time_ns,
			  void (*take)(const struct netobs_record *record,
				       void *user),
			  void *user)
{
	struct service_groups before = *groups;
	int result = 0;

	*groups = (struct service_groups){ 0 };
	for (size_t i = 0; i < config->n_groups; i++) {
		const struct service_group_config *wanted = &config->groups[i];
		struct service_group *group = &groups->groups[groups->n];
		int r = take_group(&before, config, wanted, group);

		if (r < 0) {
			free_group(group);
			result = r;
			continue;
		}
		groups->n++;
		group->counts = counts_of(config);
		group->has_records = wanted->has_records;
		if (wanted->has_metrics)
			add_metrics(groups, group);
	}
	service_groups_interval(&before, time_ns, take, user);
	service_groups_clear(&before);
	return result;
}

void service_groups_add(struct service_groups *groups,
			const struct netobs_record *record)
{
	for (size_t i = 0; i < groups->n; i++)
		netobs_series_add(groups->groups[i].series, record);
}

/* ---- Status -------------------------------------------------------------------------- */

struct group_sums {
	struct netobs_series_row all, other, left; /* only counters are set */
	uint64_t series;			   /* series of all groups */
};

static void count_row(struct netobs_series_row *sum,
		      const struct netobs_series_row *row)
{
	counters_add(&sum->flows, &row->flows,
		     offsetof(struct netobs_series_row, rtt) -
			     offsetof(struct netobs_series_row, flows));
}

static void sum_row(const struct netobs_series_row *row, void *user)
{
	struct group_sums *sums = user;

	count_row(&sums->all, row);
	if (row->kind == NETOBS_SERIES_OTHER)
		count_row(&sums->other, row);
	else if (row->kind == NETOBS_SERIES_LEFT)
		count_row(&sums->left, row);
	else
		sums->series++;
}

/* @observed: enum metrics_group_counts, or-ed; the others are not known */
static void add_counts(struct json *json, const char *key, uint32_t observed,
		       const struct netobs_series_row *counts)
{
	json_key_open(json, key, '{');
	json_key_u64(json, "flows", counts->flows);
	json_key_u64(json, "packets", counts->packets);
	json_key_u64(json, "bytes", counts->bytes);
	if (observed & METRICS_GROUP_TCP)
		json_key_u64(json, "retransmits", counts->retransmits);
	if (observed & METRICS_GROUP_DROPS) {
		json_key_u64(json, "drop_packets", counts->drop_packets);
		json_key_u64(json, "drop_bytes", counts->drop_bytes);
	}
	if (observed & METRICS_GROUP_CONNECTIONS) {
		json_key_u64(json, "connections", counts->connections);
		json_key_u64(json, "connections_failed",
			     counts->connections_failed);
	}
	json_close(json, '}');
}

static void add_group(struct json *json, const struct service_group *group)
{
	struct group_sums sums = { 0 };

	netobs_series_each(group->series, sum_row, &sums);
	json_open(json, '{');
	json_key_string(json, "name", group->name);
	json_key_string(json, "by", group->by);
	json_key_u64(json, "series", sums.series);
	json_key_u64(json, "max_series", group->most);
	add_counts(json, "all", group->counts, &sums.all);
	add_counts(json, "other", group->counts, &sums.other);
	add_counts(json, "left", group->counts, &sums.left);
	json_close(json, '}');
}

void service_groups_json(const struct service_groups *groups, struct json *json)
{
	if (!groups->n)
		return;
	json_key_open(json, "groups", '[');
	for (size_t i = 0; i < groups->n; i++)
		add_group(json, &groups->groups[i]);
	json_close(json, ']');
}

void service_groups_clear(struct service_groups *groups)
{
	for (size_t i = 0; i < groups->n; i++)
		free_group(&groups->groups[i]);
	*groups = (struct service_groups){ 0 };
}

/* ---- Metrics ------------------------------------------------------------------------- */

int service_open_metrics(struct service *service)
{
	char text[640], where[512];
	int r;

	service->metrics_source = (struct metrics_source){
		.ctx = service->ctx,
		.outputs = service->sinks.outputs,
		.sampling = service->config->flows.opts.sampling,
		.on_log = service_log,
		.user = service,
	};
	r = metrics_open(&service->config->flows.metrics,
			 &service->metrics_source, &service->metrics, text,
			 sizeof(text));
	if (r < 0) {
		service_log_error(text, service);
	} else if (metrics_where(service->metrics, where, sizeof(where))) {
		snprintf(text, sizeof(text), "serving metrics at %s", where);
		service_log(NETOBS_LOG_INFO, text, service);
	}
	return r;
}

void service_refresh_metrics(struct service *service)
{
	const struct rules *rules = &service->config->flows.rules;

	service->metrics_source.n_outputs = service->sinks.n;
	service->metrics_source.closed = &service->sinks.totals;
	service->metrics_source.sampling = service->config->flows.opts.sampling;
	service->metrics_source.rules = rules->default_action ? rules : NULL;
	service->metrics_source.alerts = &service->config->flows.alerts;
	service->metrics_source.groups = service->groups.metrics;
	service->metrics_source.n_groups = service->groups.n_metrics;
	service_observers_refresh(&service->observers);
	service->metrics_source.sessions = service->observers.session_totals;
	service->metrics_source.drops = &service->observers.drop_totals;
	service->metrics_source.trace = service_trace_totals(&service->trace);
}

void service_serve_metrics(struct service *service)
{
	service_refresh_metrics(service);
	metrics_dispatch(service->metrics);
}
