/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The status of a service as JSON: docs/control.md has its members. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include <netobs/netobs.h>
#include <netobs/sink.h>

#include "base/clock_ms.h"
#include "base/json.h"
#include "base/util.h"
#include "service/options/conn_stats.h"
#include "service/metrics/metrics.h"
#include "service.h"

enum {
	INTERFACES = 1024, /* interfaces with counters; the others are summed up */
	SINK_JSON_MAX = 8192,
	STATS_JSON_MAX = 4096,
};

static void add_status_count(struct json *json, const char *key,
			     const struct netobs_count *count)
{
	json_key_open(json, key, '{');
	json_key_u64(json, "packets", count->packets);
	json_key_u64(json, "bytes", count->bytes);
	json_close(json, '}');
}

enum { DEFAULT_INTERVAL_MS = 5000 /* the library's */ };

/* ---- Configuration ---------------------------------------------------------------- */

static bool is_first_of_file(const struct conf *conf, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (conf->entries[i].place.file == conf->entries[at].place.file)
			return false;
	return true;
}

static void add_configuration(struct json *json, const struct service *service)
{
	const struct conf *conf = &service->config->conf;
	const struct service_reloads *reloads = &service->reloads;

	json_key_open(json, "configuration", '{');
	json_key_open(json, "files", '[');
	for (size_t i = 0; i < conf->n; i++)
		if (is_first_of_file(conf, i))
			json_string(json, conf->entries[i].place.file);
	json_close(json, ']');
	json_key_u64(json, "reloads", reloads->total);
	json_key_u64(json, "failed_reloads", reloads->failed);
	if (reloads->total) {
		json_key_i64(json, "last_reload_ms", reloads->last_ms);
		json_key_bool(json, "last_reload_ok", reloads->is_last_fine);
	}
	json_close(json, '}');
}

/* ---- Packets ---------------------------------------------------------------------- */

static void subtract(struct netobs_count *from,
		     const struct netobs_count *counts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		counters_subtract(from, &counts[i], sizeof(*from));
}

/* Add the difference of both sides of the identity of counters: 0 if it holds. */
static void add_difference(struct json *json, const struct netobs_stats *stats)
{
	struct netobs_count rest = stats->seen;

	subtract(&rest, &stats->exported, 1);
	subtract(&rest, &stats->pending, 1);
	subtract(&rest, &stats->filtered, 1);
	subtract(&rest, &stats->sampled_out, 1);
	subtract(&rest, stats->unparsed, NETOBS_REASONS_MAX);
	subtract(&rest, stats->lost, NETOBS_REASONS_MAX);
	json_key_open(json, "difference", '{');
	json_key_i64(json, "packets", (int64_t)rest.packets);
	json_key_i64(json, "bytes", (int64_t)rest.bytes);
	json_close(json, '}');
}

static void add_status_stats(struct json *json, const struct netobs_stats *stats)
{
	char text[STATS_JSON_MAX];
	int len = netobs_stats_json(stats, text, sizeof(text));

	json_key(json, "packets");
	json_members(json, len > 0 ? text : "{}", len > 0 ? (size_t)len : 2);
	add_difference(json, stats);
}

struct listing {
	struct json *json;
	unsigned int n;
	struct netobs_crossings listed[NETOBS_DIRECTIONS]; /* the sum */
};

static void add_outcome(struct json *json, const char *key,
			const struct netobs_count *count)
{
	if (count->packets || count->bytes)
		add_status_count(json, key, count);
}

/* Add the outcomes of packets in one direction that are not zero. */
static void add_crossings(struct json *json, const char *key,
			  const struct netobs_crossings *crossings)
{
	json_key_open(json, key, '{');
	add_status_count(json, "seen", &crossings->seen);
	add_outcome(json, "flows", &crossings->flows);
	add_outcome(json, "filtered", &crossings->filtered);
	add_outcome(json, "sampled_out", &crossings->sampled_out);
	add_outcome(json, "unparsed", &crossings->unparsed);
	add_outcome(json, "lost", &crossings->lost);
	json_close(json, '}');
}

static void add_interface(const struct netobs_interface *interface, void *user)
{
	struct listing *listing = user;
	struct json *json = listing->json;

	if (listing->n == INTERFACES)
		return;
	listing->n++;
	for (int d = 0; d < NETOBS_DIRECTIONS; d++)
		counters_add(&listing->listed[d], &interface->crossed[d],
			     sizeof(listing->listed[d]));
	json_open(json, '{');
	json_key_string(json, "name", interface->name);
	if (interface->netns)
		json_key_string(json, "netns", interface->netns);
	json_key_u64(json, "ifindex", interface->ifindex);
	json_key_u64(json, "netns_inode", interface->netns_inode);
	if (interface->container_id)
		json_key_string(json, "container_id", interface->container_id);
	if (interface->pod_uid)
		json_key_string(json, "pod_uid", interface->pod_uid);
	add_crossings(json, "ingress", &interface->crossed[NETOBS_INGRESS]);
	add_crossings(json, "egress", &interface->crossed[NETOBS_EGRESS]);
	json_close(json, '}');
}

/* Removed interfaces count among the others, so that the sum covers all that was observed. */
static void add_interfaces(struct json *json, const struct service *service)
{
	struct listing listing = { .json = json };
	struct netobs_crossings all[NETOBS_DIRECTIONS] = { 0 };

	json_key_open(json, "interfaces", '[');
	netobs_interfaces(service->ctx, add_interface, &listing, all);
	json_close(json, ']');
	for (int d = 0; d < NETOBS_DIRECTIONS; d++)
		counters_subtract(&all[d], &listing.listed[d], sizeof(all[d]));
	json_key_open(json, "other_interfaces", '{');
	add_crossings(json, "ingress", &all[NETOBS_INGRESS]);
	add_crossings(json, "egress", &all[NETOBS_EGRESS]);
	json_close(json, '}');
}

/* Order: rules of the configuration, then the default, then the rules that were replaced. */
static void add_rules(struct json *json, const struct service *service)
{
	const struct rules *rules = &service->config->flows.rules;
	struct netobs_count count, out;

	if (!rules->default_action)
		return;
	json_key_open(json, "rules", '[');
	for (uint32_t i = 0; !netobs_rule_count_get(service->ctx, i, &count) &&
			     !netobs_rule_sampled_out_get(service->ctx, i, &out);
	     i++) {
		const struct netobs_rule *rule =
			i < rules->n ? &rules->list[i] : NULL;

		if (rule)
			rules_json(json, rules_action(rule->action),
				   rule->filter, rule, &count, &out);
		else if (i == rules->n)
			rules_json(json, rules_action(rules->default_action),
				   "default", NULL, &count, &out);
		else
			rules_json(json, NULL, "replaced", NULL, &count, &out);
	}
	json_close(json, ']');
}

/* Add the counters of alert rules. */
static void add_alerts(struct json *json, const struct service *service)
{
	const struct alert_rules *alerts = &service->config->flows.alerts;

	if (!flows_may_alert(&service->config->flows))
		return;
	json_key(json, "alerts");
	alert_rules_json(alerts, service->ctx, json);
}

static void add_sessions(struct json *json, const struct service *service)
{
	const struct session_totals *totals = &service->observers.session_totals;

	if (!service->config->wants_sessions)
		return;
	json_key_open(json, "sessions", '{');
	json_key_u64(json, "open", totals->open);
	json_key_u64(json, "ended", totals->ended);
	json_key_u64(json, "reported", session_totals_reported(totals));
	json_key_u64(json, "left_out", totals->left_out);
	json_key_u64(json, "lost", totals->lost);
	json_key_u64(json, "updates", totals->updates);
	json_close(json, '}');
}

static void add_drops(struct json *json, const struct service *service)
{
	const struct drop_totals *totals = &service->observers.drop_totals;

	if (!service->config->wants_drops)
		return;
	json_key_open(json, "drops", '{');
	json_key_open(json, "reasons", '[');
	for (size_t i = 0; i < totals->n; i++) {
		json_open(json, '{');
		json_key_string(json, "reason", totals->reasons[i].reason);
		json_key_string(json, "kind", totals->reasons[i].kind);
		json_key_u64(json, "packets", totals->reasons[i].packets);
		json_key_u64(json, "bytes", totals->reasons[i].bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_key_u64(json, "lost", totals->lost_packets);
	json_key_u64(json, "missed", totals->missed);
	json_close(json, '}');
}

static void add_trace(struct json *json, const struct service *service)
{
	const struct trace_totals totals = service_trace_totals(&service->trace);

	if (!service->trace.n_rules && !totals.armed && !totals.refused)
		return;
	json_key_open(json, "trace", '{');
	json_key_u64(json, "connections", totals.connections);
	json_key_u64(json, "waiting", service->trace.n_waiting);
	json_key_u64(json, "armed", totals.armed);
	json_key_u64(json, "refused", totals.refused);
	json_key_u64(json, "journeys", totals.journeys);
	json_key_u64(json, "complete_journeys", totals.complete_journeys);
	json_key_u64(json, "events", totals.events);
	json_key_u64(json, "cut_by_connection", totals.cut_by_connection);
	json_key_u64(json, "cut_by_rate", totals.cut_by_rate);
	json_key_u64(json, "lost_events", totals.lost_events);
	json_close(json, '}');
}

static void add_diagnoses(struct json *json, const struct service *service)
{
	const struct diagnoses *all = &service->trace.diagnoses;
	const struct diagnosis_totals *totals = &all->totals;

	if (!all->config.is_enabled && !totals->followed)
		return;
	json_key_open(json, "diagnose", '{');
	json_key_u64(json, "followed", totals->followed);
	json_key_u64(json, "now", all->n);
	json_key_u64(json, "certain", totals->verdicts[NETOBS_CERTAIN]);
	json_key_u64(json, "likely", totals->verdicts[NETOBS_LIKELY]);
	json_key_u64(json, "not_sure", totals->verdicts[NETOBS_NOT_SURE]);
	json_key_u64(json, "without_turns", totals->without_turns);
	json_key_u64(json, "over_max", totals->over_max);
	json_key_u64(json, "not_tcp", totals->not_tcp);
	json_close(json, '}');
}

/* ---- The work --------------------------------------------------------------------- */

/* Add the counters of NAT mappings. */
static void add_mappings(struct json *json, const struct service *service,
			 const struct netobs_engine_stats *engine)
{
	if (!service->config->flows.nat)
		return;
	json_key_open(json, "mappings", '{');
	json_key_u64(json, "active", engine->mappings);
	json_key_u64(json, "begun", engine->mappings_begun);
	json_key_u64(json, "ended", engine->mappings_ended);
	json_key_u64(json, "forgotten", engine->mappings_forgotten);
	json_key_u64(json, "refused", engine->translations_refused);
	json_key_u64(json, "lost_reports", engine->translations_lost);
	json_key_u64(json, "ambiguous", engine->translations_ambiguous);
	json_key_u64(json, "lists_again", engine->mapping_lists_again);
	json_key_u64(json, "lists_incomplete", engine->mapping_lists_incomplete);
	json_key_u64(json, "questions_again", engine->mapping_questions_again);
	json_close(json, '}');
}

static void add_tables(struct json *json, const struct netobs_stats *stats,
		       const struct netobs_engine_stats *engine)
{
	json_key_open(json, "tables", '{');
	json_key_u64(json, "flows", stats->table_entries);
	json_key_u64(json, "max_flows", engine->max_flows);
	json_key_u64(json, "flow_memory", stats->flow_memory);
	json_key_u64(json, "kernel_memory", stats->kernel_memory);
	add_status_count(json, "spilled", &stats->spilled);
	json_close(json, '}');
}

/* @return the upper end of the class that has the drain at @permille; 0: it has none */
static uint64_t quantile_us(const struct netobs_engine_stats *engine,
			    uint64_t permille)
{
	const uint64_t wanted = (engine->drains * permille + 999) / 1000;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < NETOBS_DRAIN_TIMES - 1; i++) {
		sum += engine->drains_by_time[i];
		if (sum && sum >= wanted)
			return UINT64_C(64) << i;
	}
	return 0;
}

static void add_quantile(struct json *json, const char *key,
			 const struct netobs_engine_stats *engine,
			 uint64_t permille)
{
	const uint64_t us = quantile_us(engine, permille);

	if (us)
		json_key_u64(json, key, us);
}

/* Keys of the configuration that take effect after netobsctl detach. */
static void add_kept(struct json *json, const struct netobs_engine_stats *engine)
{
	static const struct {
		uint32_t bit;
		const char *key;
	} kept[] = {
		{ NETOBS_KEPT_MAX_FLOWS, "max_flows" },
		{ NETOBS_KEPT_MAX_MEMORY, "max_memory" },
		{ NETOBS_KEPT_ATTACH, "attach" },
		{ NETOBS_KEPT_ATTACH_ORDER, "attach_order" },
	};

	json_key_open(json, "kept_keys", '[');
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (engine->kept & kept[i].bit)
			json_string(json, kept[i].key);
	json_close(json, ']');
}

static void add_drains(struct json *json, const struct netobs_stats *stats,
		       const struct netobs_engine_stats *engine)
{
	json_key_open(json, "drains", '{');
	json_key_u64(json, "total", engine->drains);
	json_key_u64(json, "early", stats->early_drains);
	json_key_u64(json, "time_us", engine->drain_ns / 1000);
	json_key_u64(json, "cpu_us", engine->drain_cpu_ns / 1000);
	add_quantile(json, "median_us", engine, 500);
	add_quantile(json, "p99_us", engine, 990);
	add_quantile(json, "max_us", engine, 1000);
	json_close(json, '}');
}

/* ---- Sinks ------------------------------------------------------------------------ */

static const char *find_sink_state(const struct service_sink *sink,
				   const struct netobs_sink_stats *stats)
{
	if (sink->state == SERVICE_SINK_LEAVING ||
	    sink->state == SERVICE_SINK_HANDING_OVER)
		return "leaving";
	return stats->outage_ns ? "outage" : "connected";
}

/* The library's object, and before its members those of the service. */
static void add_status_sink(struct json *json, const struct output *output,
			    const struct service_sink *sink)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };
	const struct netobs_sink *from = output->sink;
	char text[SINK_JSON_MAX];
	int len = from ? netobs_sink_stats_json(from, text, sizeof(text)) : -1;

	if (len <= 0)
		return;
	netobs_sink_stats_get(from, &stats);
	json_open(json, '{');
	json_key_string(json, "name", sink->name);
	json_key_string(json, "state", find_sink_state(sink, &stats));
	if (stats.outage_ns) {
		json_key_i64(json, "outage_since_ms",
			     stats.outage_ns / NSEC_PER_MSEC);
	}
	json_key_u64(json, "pending_ms", stats.pending_ms);
	json_key_u64(json, "spool_bytes", stats.spool_bytes);
	json_key_u64(json, "spool_max_bytes", stats.spool_max_bytes);
	if (stats.delivered_ns) {
		json_key_i64(json, "delivered_ms",
			     stats.delivered_ns / NSEC_PER_MSEC);
	}
	json_members(json, text + 1, (size_t)len - 2);
	json_close(json, '}');
}

static void add_sinks(struct json *json, const struct service_sinks *sinks)
{
	json_key_open(json, "sinks", '[');
	for (size_t i = 0; i < sinks->n; i++)
		add_status_sink(json, &sinks->outputs[i], &sinks->sinks[i]);
	json_close(json, ']');
}

static void add_sink_totals(struct json *json, const struct service_sinks *sinks)
{
	cleanup_free struct sink_total *list = NULL;
	size_t n =
		sink_totals_sum(&sinks->totals, sinks->outputs, sinks->n, &list);

	sink_totals_json(json, "sink_totals", list, n);
}

/* ---- All of it -------------------------------------------------------------------- */

static const char *level_name(int level)
{
	return level <= NETOBS_LOG_ERROR   ? "error" :
	       level == NETOBS_LOG_WARNING ? "warning" :
	       level == NETOBS_LOG_INFO	   ? "info" :
					     "debug";
}

void service_status_add(struct json *json, void *user)
{
	struct service *service = user;
	struct netobs_stats stats = { .sz = sizeof(stats) };
	struct netobs_engine_stats engine = { .sz = sizeof(engine) };

	service_observers_refresh(&service->observers);
	netobs_stats_get(service->ctx, &stats);
	netobs_engine_stats_get(service->ctx, &engine);
	json_key_u64(json, "pid", (uint64_t)getpid());
	json_key_i64(json, "time_ms", clock_ms(CLOCK_REALTIME));
	json_key_i64(json, "started_ms", service->started_ms);
	json_key_u64(json, "interval_ms",
		     service->config->flows.opts.interval_ms ?:
			     DEFAULT_INTERVAL_MS);
	add_configuration(json, service);
	json_key_string(json, "log_level", level_name(service->log_level));
	json_key_u64(json, "errors", service->metrics_source.errors);
	json_key_u64(json, "warnings", service->metrics_source.warnings);
	add_status_stats(json, &stats);
	json_key_u64(json, "observed_interfaces", stats.interfaces);
	json_key_u64(json, "shadowed_directions", stats.shadowed);
	add_interfaces(json, service);
	add_rules(json, service);
	add_alerts(json, service);
	add_sessions(json, service);
	add_drops(json, service);
	add_trace(json, service);
	add_diagnoses(json, service);
	service_groups_json(&service->groups, json);
	add_tables(json, &stats, &engine);
	conn_stats_json(json, service->ctx);
	add_mappings(json, service, &engine);
	add_kept(json, &engine);
	add_drains(json, &stats, &engine);
	add_sinks(json, &service->sinks);
	add_sink_totals(json, &service->sinks);
}
