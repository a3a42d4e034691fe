/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "metrics_table.h"

#include <netobs/version.h>

#include "base/util.h"

const char metrics_skip;

/* ---- Sets of values: what a metric has a series for --------------------------------- */

/* A metric without parts has one series, and no label. */
static const void *set_parts(const struct metrics_at *at)
{
	if (!at->metric->parts)
		return at->i ? NULL : at->values;
	if (!at->metric->parts[at->i].name)
		return NULL;
	metrics_label_add(at->labels, at->metric->label,
			  at->metric->parts[at->i].name);
	return (const char *)at->values + at->metric->parts[at->i].offset;
}

/* Set the label of a series by reason. @reason: NULL: there are no more series. */
static const void *set_reason(const char *reason, const void *value,
			      struct metrics_labels *labels)
{
	if (reason)
		metrics_label_add(labels, "reason", reason);
	return reason ? value : NULL;
}

static const void *set_unparsed(const struct metrics_at *at)
{
	return set_reason(netobs_unparsed_name(at->i),
			  &at->values->stats.unparsed[at->i], at->labels);
}

static const void *set_lost(const struct metrics_at *at)
{
	return set_reason(netobs_lost_name(at->i),
			  &at->values->stats.lost[at->i], at->labels);
}

/* Each interface has a series per direction. The sum of interfaces without series is last. */
static const void *set_interface(const struct metrics_at *at)
{
	static const char *const directions[] = { "ingress", "egress" };
	const struct metrics_interface *series;
	bool are_others = at->i / 2 == METRICS_INTERFACES;

	if (at->i / 2 > METRICS_INTERFACES)
		return NULL;
	series = at->values->by_interface + at->i / 2;
	if (!are_others && !series->is_used)
		return METRICS_SKIP;
	/* No name of an interface has a space. */
	metrics_label_add(at->labels, "interface",
			  are_others ? "all others" : series->name);
	metrics_label_add(at->labels, "netns",
			  are_others	? "" :
			  series->netns ?:
					  "");
	metrics_label_add(at->labels, "direction", directions[at->i % 2]);
	return (are_others ? at->values->others : series->crossed) +
	       NETOBS_INGRESS + at->i % 2;
}

/* Value of metrics whose information is in their labels. */
static const uint64_t one = 1;

/* Interfaces with a container or a pod at their other end. */
static const void *set_container(const struct metrics_at *at)
{
	const struct metrics_interface *series = at->values->by_interface + at->i;

	if (at->i == METRICS_INTERFACES)
		return NULL;
	if (!series->is_used || !(*series->container_id || *series->pod_uid))
		return METRICS_SKIP;
	metrics_label_add(at->labels, "interface", series->name);
	metrics_label_add(at->labels, "netns", series->netns ?: "");
	metrics_label_add(at->labels, "container_id", series->container_id);
	metrics_label_add(at->labels, "pod_uid", series->pod_uid);
	return &one;
}

static void add_sink_labels(struct metrics_labels *labels,
			    const struct sink_total *sink)
{
	metrics_label_add(labels, "sink", sink->target);
	metrics_label_add(labels, "output", sink->name);
}

static const void *set_sink(const struct metrics_at *at)
{
	if (at->i == at->values->n_sinks)
		return NULL;
	add_sink_labels(at->labels, &at->values->sinks[at->i]);
	return &at->values->sinks[at->i];
}

/* A sink that was removed has counters only. */
static const void *set_open_sink(const struct metrics_at *at)
{
	if (at->i < at->values->n_sinks && !at->values->sinks[at->i].is_open)
		return METRICS_SKIP;
	return set_sink(at);
}

/* Sinks that have delivered at least one record. */
static const void *set_delivering_sink(const struct metrics_at *at)
{
	if (at->i < at->values->n_sinks &&
	    !at->values->sinks[at->i].stats.delivered_ns)
		return METRICS_SKIP;
	return set_open_sink(at);
}

static const void *set_sink_drop(const struct metrics_at *at)
{
	const struct sink_total *sink = at->values->sinks + at->i / SINK_REASONS;
	unsigned int reason = at->i % SINK_REASONS;

	if (at->i / SINK_REASONS == at->values->n_sinks)
		return NULL;
	add_sink_labels(at->labels, sink);
	metrics_label_add(at->labels, "reason", sink_reason_name(reason));
	return &sink->stats.dropped[reason];
}

static const void *set_sink_counter(const struct metrics_at *at)
{
	const struct sink_total *sink =
		at->values->sinks + at->i / SINK_COUNTERS_MAX;
	const size_t counter = at->i % SINK_COUNTERS_MAX;

	if (at->i / SINK_COUNTERS_MAX == at->values->n_sinks)
		return NULL;
	if (counter >= sink->n_counters)
		return METRICS_SKIP;
	add_sink_labels(at->labels, sink);
	metrics_label_add(at->labels, "event", sink->counters[counter].name);
	return &sink->counters[counter].value;
}

static const void *set_rule(const struct metrics_at *at)
{
	const struct metrics_rule *rule = at->values->rules + at->i;

	if (at->i == at->values->n_rules)
		return NULL;
	metrics_label_index(at->labels, "rule", rule->index);
	metrics_label_add(at->labels, "action", rule->action);
	metrics_label_add(at->labels, "filter", rule->filter);
	return rule;
}

static const void *set_alert(const struct metrics_at *at)
{
	if (at->i == at->values->n_alerts)
		return NULL;
	metrics_label_add(at->labels, "alert", at->values->alerts[at->i].name);
	return &at->values->alerts[at->i].counts;
}

static const void *set_suppressed(const struct metrics_at *at)
{
	static const char *const reasons[] = { "hold", "limit" };
	const size_t n = ARRAY_SIZE(reasons), reason = at->i % n;
	const struct netobs_alert_counts *counts =
		set_alert(&(struct metrics_at){ at->metric, at->values,
						at->i / n, at->labels });

	return counts ? set_reason(reasons[reason],
				   reason ? &counts->limited : &counts->held,
				   at->labels) :
			NULL;
}

static const void *set_session_ending(const struct metrics_at *at)
{
	if (at->i == NETOBS_SESSION_OPEN)
		return METRICS_SKIP; /* reports of open sessions are updates */
	if (at->i == NETOBS_SESSION_ENDINGS)
		return NULL;
	metrics_label_add(at->labels, "ended", netobs_session_ended_name(at->i));
	return &at->values->sessions.reported[at->i];
}

static const void *set_drop(const struct metrics_at *at)
{
	if (at->i == at->values->drops.n)
		return NULL;
	metrics_label_add(at->labels, "reason",
			  at->values->drops.reasons[at->i].reason);
	metrics_label_add(at->labels, "kind",
			  at->values->drops.reasons[at->i].kind);
	return &at->values->drops.reasons[at->i];
}

/* Series of groups, by the names of keys; then other flows, and removed series. None for what is not observed. */
static const void *set_group(const struct metrics_at *at)
{
	static const char *const kinds[] = {
		[NETOBS_SERIES_OTHER] = "other", [NETOBS_SERIES_LEFT] = "left"
	};
	const struct metrics_series *series = at->values->series + at->i;

	if (at->i == at->values->n_series)
		return NULL;
	if (at->metric->counts & ~series->counts)
		return METRICS_SKIP;
	metrics_label_add(at->labels, "group", series->group->name);
	if (series->row.kind != NETOBS_SERIES_GROUP)
		metrics_label_add(at->labels, "series", kinds[series->row.kind]);
	for (uint32_t key = 0; key < series->row.n; key++)
		metrics_label_add(at->labels, series->group->keys.names[key],
				  series->row.texts[key]);
	return series;
}

static const void *set_build(const struct metrics_at *at)
{
	if (!at->i)
		metrics_label_add(at->labels, "version", NETOBS_VERSION);
	return at->i ? NULL : &one;
}

#define PARTS(name, ...) \
	static const struct metrics_part name[] = { __VA_ARGS__, { 0 } }
#define PART(name, member)                                    \
	{                                                     \
		name, offsetof(struct metrics_values, member) \
	}

PARTS(flow_drops, PART("flow", stats.drops_in_flows),
      PART("no_flow", stats.drops_no_flow),
      PART("no_tuple", stats.drops_no_tuple),
      PART("no_room", stats.drops_no_room), PART("benign", stats.drops_benign));
PARTS(evictions, PART("half_open", connections.evicted_half_open),
      PART("closed", connections.evicted_closed),
      PART("idle", connections.evicted_idle));
PARTS(missing_events, PART("max_events", trace.cut_by_connection),
      PART("max_rate", trace.cut_by_rate), PART("room", trace.lost_events));
PARTS(verdicts, PART("not sure", trace.diagnoses.verdicts[NETOBS_NOT_SURE]),
      PART("likely", trace.diagnoses.verdicts[NETOBS_LIKELY]),
      PART("certain", trace.diagnoses.verdicts[NETOBS_CERTAIN]));
PARTS(undiagnosed, PART("max", trace.diagnoses.over_max),
      PART("not_tcp", trace.diagnoses.not_tcp),
      PART("no_turns", trace.diagnoses.without_turns));
PARTS(log_levels, PART("error", errors), PART("warning", warnings));

/* ---- The table -------------------------------------------------------------------- */

#define OF(function, type, member) \
	.set = (function), .offset = offsetof(struct type, member)
#define ONE(member) OF(set_parts, metrics_values, member)
#define BY(word, list) .set = set_parts, .label = (word), .parts = (list)
#define OPEN_SINK(member) OF(set_open_sink, sink_total, member)

/* A pair of counters: packets and their bytes, or records and their packets. */
#define COUNTS(name, type, help, set, of, member)                          \
	{ name "_packets", type, help, OF(set, of, member packets) },      \
	{                                                                  \
		name "_bytes", type, help ": bytes from the IP header on", \
			OF(set, of, member bytes)                          \
	}
#define ALL_COUNTS(name, type, help, member) \
	COUNTS(name, type, help, set_parts, metrics_values, stats.member.)
#define INTERFACE_COUNTS(name, help, member) \
	COUNTS(name, COUNTER, help, set_interface, netobs_crossings, member.)
#define SINK_COUNTS(name, type, help, set, of, member)                \
	{ name "_records", type, help, OF(set, of, member records) }, \
	{                                                             \
		name "_packets", type, help ": packets in them",      \
			OF(set, of, member packets)                   \
	}

const struct metric metrics_table[] = {
	ALL_COUNTS("netobs_seen", COUNTER,
		   "Packets that reached any observed interface, each counted where it was observed first",
		   seen),
	ALL_COUNTS("netobs_observed", COUNTER,
		   "Packets at all interfaces and directions that they crossed",
		   observed),
	ALL_COUNTS("netobs_exported", COUNTER, "Packets delivered in records",
		   exported),
	ALL_COUNTS("netobs_pending", GAUGE,
		   "Packets drained that will be delivered later", pending),
	ALL_COUNTS("netobs_filtered", COUNTER,
		   "Packets left out by the filter, by rules or for their flow's size",
		   filtered),
	ALL_COUNTS("netobs_small", COUNTER,
		   "Filtered packets: those of flows below the least size", small),
	ALL_COUNTS("netobs_sampled_out", COUNTER,
		   "Packets left out by sampling", sampled_out),
	COUNTS("netobs_unparsed", COUNTER,
	       "Packets that did not become flows, by reason", set_unparsed,
	       netobs_count, ),
	COUNTS("netobs_lost", COUNTER, "Packets lost, by reason", set_lost,
	       netobs_count, ),
	ALL_COUNTS("netobs_spilled", COUNTER,
		   "Observed packets that took the slow way through an overflow table",
		   spilled),
	ALL_COUNTS("netobs_inferred", COUNTER,
		   "Seen packets whose first observation does not follow from the interfaces",
		   inferred),
	{ "netobs_flow_drops_packets", COUNTER,
	  "Packets that the kernel dropped, by whether a flow record has them",
	  BY("place", flow_drops),
	  .offset = offsetof(struct netobs_count, packets) },
	{ "netobs_flow_drops_bytes", COUNTER,
	  "Packets that the kernel dropped, by whether a flow record has them: bytes from the IP header on",
	  BY("place", flow_drops),
	  .offset = offsetof(struct netobs_count, bytes) },
	ALL_COUNTS("netobs_flow_drops_pending", GAUGE,
		   "Packets that the kernel dropped, and whose flow may have a record yet",
		   drops_pending),
	{ "netobs_flow_drops_missed", COUNTER,
	  "Drops in interrupts, which no record of a flow has",
	  ONE(stats.drops_missed) },
	{ "netobs_records", COUNTER, "Flow records delivered", ONE(stats.flows) },
	{ "netobs_sampling_interval", GAUGE,
	  "One packet or flow of so many is counted", ONE(sampling) },

	INTERFACE_COUNTS("netobs_interface_seen",
			 "Packets at each interface and direction that they crossed",
			 seen),
	INTERFACE_COUNTS(
		"netobs_interface",
		"Packets in flows, at each interface and direction that they crossed",
		flows),
	INTERFACE_COUNTS(
		"netobs_interface_filtered",
		"Packets left out by the filter or by rules, at each interface",
		filtered),
	INTERFACE_COUNTS("netobs_interface_sampled_out",
			 "Packets left out by sampling, at each interface",
			 sampled_out),
	INTERFACE_COUNTS("netobs_interface_unparsed",
			 "Packets that did not become flows, at each interface",
			 unparsed),
	INTERFACE_COUNTS("netobs_interface_lost",
			 "Packets lost in the kernel, at each interface", lost),
	{ "netobs_interface_container_info", GAUGE,
	  "Container or pod at the other end of a pair of interfaces",
	  .set = set_container },
	{ "netobs_interfaces", GAUGE, "Interfaces observed now", ONE(interfaces) },
	{ "netobs_shadowed_directions", GAUGE,
	  "Directions of interfaces where another program may hide packets",
	  ONE(shadowed) },

	{ "netobs_flow_table_entries", GAUGE,
	  "Flows per interface and direction in the last drain",
	  ONE(stats.table_entries) },
	{ "netobs_flow_table_limit", GAUGE,
	  "Flows per interface and direction that an interval can have",
	  ONE(engine.max_flows) },
	{ "netobs_flow_memory_bytes", GAUGE,
	  "Memory of the process for flows until their interval ends",
	  ONE(stats.flow_memory) },
	{ "netobs_kernel_memory_bytes", GAUGE,
	  "Memory of the BPF maps, without the entries of overflow tables",
	  ONE(stats.kernel_memory) },

	{ "netobs_connections_limit", GAUGE,
	  "TCP connections that are measured at a time; 0: none are",
	  ONE(connections.capacity) },
	{ "netobs_connections", GAUGE,
	  "Places of the table that TCP connections have", ONE(connections.used) },
	{ "netobs_connections_memory_bytes", GAUGE,
	  "Memory of the table of TCP connections", ONE(connections.memory) },
	{ "netobs_connections_created", COUNTER,
	  "TCP connections that were given a place in the table",
	  ONE(connections.created) },
	{ "netobs_connections_evicted", COUNTER,
	  "TCP connections that gave their place to others, by reason",
	  BY("reason", evictions) },
	{ "netobs_connections_refused_packets", COUNTER,
	  "Packets of TCP connections that found no place in the table",
	  ONE(connections.refused_packets) },

	{ "netobs_tcp_rtt_seconds", HISTOGRAM,
	  "Round-trip times in records with new samples of them", ONE(rtt) },
	{ "netobs_tcp_path_rtt_seconds", HISTOGRAM,
	  "Path RTTs in such records, where the handshake was seen",
	  ONE(path_rtt) },
	{ "netobs_tcp_response_time_seconds", HISTOGRAM,
	  "Response times of servers in records with new samples of them",
	  ONE(response_time) },
	{ "netobs_tcp_app_latency_seconds", HISTOGRAM,
	  "What servers took themselves of these response times",
	  ONE(app_latency) },
	{ "netobs_tcp_retransmitted_segments", COUNTER,
	  "Segments with data that had been at the interface before",
	  ONE(health.retransmits) },
	{ "netobs_tcp_retransmitted_bytes", COUNTER, "Bytes of such data",
	  ONE(health.retransmitted_bytes) },
	{ "netobs_tcp_out_of_order_segments", COUNTER,
	  "Segments that came behind later ones", ONE(health.out_of_order) },
	{ "netobs_tcp_late_unknown_segments", COUNTER,
	  "Segments that are retransmitted or out of order, it is not known which",
	  ONE(health.late_unknown) },
	{ "netobs_tcp_duplicate_acks", COUNTER,
	  "Packets that repeated an acknowledgement", ONE(health.duplicate_acks) },
	{ "netobs_tcp_zero_windows", COUNTER,
	  "How often a receive window became 0", ONE(health.zero_windows) },

	{ "netobs_alert_samples", COUNTER,
	  "Samples of TCP connections or flows that broke the rule of an alert",
	  OF(set_alert, netobs_alert_counts, broken) },
	{ "netobs_alerts_fired", COUNTER, "Alerts that were reported",
	  OF(set_alert, netobs_alert_counts, fired) },
	{ "netobs_alerts_suppressed", COUNTER,
	  "Samples that broke the rule and were not reported, by reason",
	  .set = set_suppressed },
	{ "netobs_alerts_lost", COUNTER,
	  "Alerts lost because the process was late",
	  OF(set_alert, netobs_alert_counts, lost) },

	{ "netobs_sessions", GAUGE,
	  "Open TCP connections of local sockets that began while they were observed",
	  ONE(sessions.open) },
	{ "netobs_sessions_ended", COUNTER,
	  "TCP connections of local sockets that ended", ONE(sessions.ended) },
	{ "netobs_sessions_reported", COUNTER,
	  "Of these, records, by how they ended", .set = set_session_ending },
	{ "netobs_sessions_left_out", COUNTER,
	  "Of these, connections of other processes than was chosen",
	  ONE(sessions.left_out) },
	{ "netobs_sessions_lost", COUNTER,
	  "Of these, connections lost because the process was late",
	  ONE(sessions.lost) },
	{ "netobs_sessions_updates", COUNTER, "Records of open connections",
	  ONE(sessions.updates) },
	{ "netobs_drops_packets", COUNTER,
	  "Packets that the kernel dropped, by its reason; kind benign: nothing was lost",
	  OF(set_drop, drop_total, packets) },
	{ "netobs_drops_bytes", COUNTER, "Bytes of these packets",
	  OF(set_drop, drop_total, bytes) },
	{ "netobs_drops_lost_packets", COUNTER,
	  "Packets that the kernel dropped, and that are in no record for want of room",
	  ONE(drops.lost_packets) },
	{ "netobs_drops_missed", COUNTER,
	  "Drops in interrupts, of unknown reason, that are in no record",
	  ONE(drops.missed) },
	{ "netobs_trace_connections", GAUGE,
	  "Connections that are traced for alerts now", ONE(trace.connections) },
	{ "netobs_trace_alerts_armed", COUNTER,
	  "Alerts whose connection was traced", ONE(trace.armed) },
	{ "netobs_trace_alerts_refused", COUNTER,
	  "Alerts whose connection was not traced: max_connections were, it was not of TCP, or the tracer failed",
	  ONE(trace.refused) },
	{ "netobs_trace_journeys", COUNTER,
	  "Journeys of bytes that were traced", ONE(trace.journeys) },
	{ "netobs_trace_journeys_complete", COUNTER,
	  "Of these, journeys without unknown parts",
	  ONE(trace.complete_journeys) },
	{ "netobs_trace_events", COUNTER, "Events that journeys were made of",
	  ONE(trace.events) },
	{ "netobs_trace_events_missing", COUNTER,
	  "Events that journeys lack: beyond a budget, or without room",
	  BY("reason", missing_events) },
	{ "netobs_diagnose_alerts_followed", COUNTER,
	  "Alerts that are being diagnosed, or have been",
	  ONE(trace.diagnoses.followed) },
	{ "netobs_diagnose_verdicts", COUNTER,
	  "Verdicts of alerts, by how sure they are", BY("certainty", verdicts) },
	{ "netobs_diagnose_alerts_refused", COUNTER, "Alerts without a verdict",
	  BY("reason", undiagnosed) },

	{ "netobs_drain_duration_seconds", HISTOGRAM,
	  "Time that drains took, from their begin to their last record",
	  ONE(drains) },
	{ "netobs_drain_cpu_seconds", COUNTER, "CPU time of drains",
	  ONE(engine.drain_cpu_ns), .digits = 9 },
	{ "netobs_early_drains", COUNTER,
	  "Drains ahead of time, because flows reached their cap",
	  ONE(stats.early_drains) },

	{ "netobs_bpf_programs", GAUGE, "BPF programs loaded for interfaces",
	  ONE(programs) },
	{ "netobs_bpf_stats_enabled", GAUGE,
	  "1 while the kernel counts runs of BPF programs (kernel.bpf_stats_enabled)",
	  ONE(bpf_stats_enabled) },
	{ "netobs_bpf_runs", COUNTER, "Runs of the BPF programs, while counted",
	  ONE(engine.program_runs) },
	{ "netobs_bpf_run_seconds", COUNTER,
	  "Time of the BPF programs in these runs", ONE(engine.program_ns),
	  .digits = 9 },
	{ "netobs_translations", GAUGE, "Translations by NAT that are known",
	  ONE(engine.translations) },
	{ "netobs_translations_refused", COUNTER,
	  "Translations that there was no room for",
	  ONE(engine.translations_refused) },
	{ "netobs_translations_lost", COUNTER,
	  "Reports of translations that were lost",
	  ONE(engine.translations_lost) },
	{ "netobs_translations_ambiguous", COUNTER,
	  "Ends of records for which several translations were possible",
	  ONE(engine.translations_ambiguous) },
	{ "netobs_mappings", GAUGE,
	  "Of the translations: mappings by NAT that are in use",
	  ONE(engine.mappings) },
	{ "netobs_mappings_begun", COUNTER,
	  "Mappings that began, or were there before",
	  ONE(engine.mappings_begun) },
	{ "netobs_mappings_ended", COUNTER,
	  "Of these, mappings that the kernel no longer has",
	  ONE(engine.mappings_ended) },
	{ "netobs_mappings_forgotten", COUNTER,
	  "Of these, mappings that made room, or are not observed any more",
	  ONE(engine.mappings_forgotten) },
	{ "netobs_mapping_lists_again", COUNTER,
	  "Lists of the kernel's connections that were begun again",
	  ONE(engine.mapping_lists_again) },
	{ "netobs_mapping_lists_incomplete", COUNTER,
	  "Lists of the kernel's connections that were not complete after all tries",
	  ONE(engine.mapping_lists_incomplete) },
	{ "netobs_mapping_questions_again", COUNTER,
	  "Questions whether the kernel still has a mapping that are asked again",
	  ONE(engine.mapping_questions_again) },

	SINK_COUNTS("netobs_sink_taken", COUNTER, "Records given to the sink",
		    set_sink, sink_total, stats.taken.),
	SINK_COUNTS("netobs_sink_recovered", COUNTER,
		    "Records of an earlier run or sink, found in the spool",
		    set_sink, sink_total, stats.recovered.),
	SINK_COUNTS("netobs_sink_delivered", COUNTER, "Records delivered",
		    set_sink, sink_total, stats.delivered.),
	SINK_COUNTS("netobs_sink_pending", GAUGE,
		    "Records that wait to be delivered", set_sink, sink_total,
		    stats.pending.),
	SINK_COUNTS("netobs_sink_dropped", COUNTER, "Records dropped, by reason",
		    set_sink_drop, netobs_sink_count, ),
	SINK_COUNTS("netobs_sink_kept", COUNTER,
		    "Records left in a spool on disk by sinks that were closed",
		    set_sink, sink_total, kept.),
	{ "netobs_sink_connected", GAUGE,
	  "0 while the other side is known to be unreachable, or a file cannot be written",
	  OPEN_SINK(is_connected) },
	{ "netobs_sink_pending_seconds", GAUGE,
	  "Time that the oldest pending record has waited, at most",
	  OPEN_SINK(stats.pending_ms), .digits = 3 },
	{ "netobs_sink_last_delivery_timestamp_seconds", GAUGE,
	  "When records were delivered last",
	  OF(set_delivering_sink, sink_total, stats.delivered_ns), .digits = 9 },
	{ "netobs_sink_spool_bytes", GAUGE, "Size of the spool",
	  OPEN_SINK(stats.spool_bytes) },
	{ "netobs_sink_spool_limit_bytes", GAUGE,
	  "Size that the spool can have", OPEN_SINK(stats.spool_max_bytes) },
	{ "netobs_sink_durable_records", COUNTER,
	  "Records on disk, from the beginning of the spool on",
	  OF(set_sink, sink_total, stats.durable_records) },
	{ "netobs_sink_events", COUNTER,
	  "What the kind of sink counts: netobs-sinks(7)",
	  .set = set_sink_counter },

	COUNTS("netobs_rule", COUNTER,
	       "Packets that a rule decided about, at each point", set_rule,
	       metrics_rule, count.),
	COUNTS("netobs_rule_sampled_out", COUNTER,
	       "Of these, packets left out by sampling", set_rule, metrics_rule,
	       sampled_out.),

	COUNTS("netobs_group", COUNTER,
	       "Packets of flows of a group, of other flows, and of groups that have no series any more",
	       set_group, metrics_series, row.),
	{ "netobs_group_flows", COUNTER, "Records of these flows",
	  OF(set_group, metrics_series, row.flows) },
	{ "netobs_group_retransmitted_segments", COUNTER,
	  "Segments of TCP with data that had been at the interface before",
	  OF(set_group, metrics_series, row.retransmits),
	  .counts = METRICS_GROUP_TCP },
	{ "netobs_group_drops_packets", COUNTER,
	  "Packets of these flows that the kernel dropped",
	  OF(set_group, metrics_series, row.drop_packets),
	  .counts = METRICS_GROUP_DROPS },
	{ "netobs_group_drops_bytes", COUNTER, "Bytes of these packets",
	  OF(set_group, metrics_series, row.drop_bytes),
	  .counts = METRICS_GROUP_DROPS },
	{ "netobs_group_connections", COUNTER,
	  "TCP connections of local sockets that ended",
	  OF(set_group, metrics_series, row.connections),
	  .counts = METRICS_GROUP_CONNECTIONS },
	{ "netobs_group_connections_failed", COUNTER,
	  "Of these, connections that were refused, timed out, were reset without data, or had another error",
	  OF(set_group, metrics_series, row.connections_failed),
	  .counts = METRICS_GROUP_CONNECTIONS },
	{ "netobs_group_rtt_seconds", HISTOGRAM,
	  "Round-trip times in records of TCP with new samples of them",
	  OF(set_group, metrics_series, rtt), .counts = METRICS_GROUP_RTT },
	{ "netobs_group_app_latency_seconds", HISTOGRAM,
	  "What servers took themselves to answer, in such records",
	  OF(set_group, metrics_series, app_latency),
	  .counts = METRICS_GROUP_APP_LATENCY },

	{ "netobs_log_messages", COUNTER, "Messages logged",
	  BY("level", log_levels) },
	{ "netobs_build_info", GAUGE, "The version of netobs", .set = set_build },
	{ "process_cpu_seconds", COUNTER, "CPU time of the process",
	  ONE(process.cpu_ms), .digits = 3 },
	{ "process_resident_memory_bytes", GAUGE, "Resident memory",
	  ONE(process.resident_bytes) },
	{ "process_virtual_memory_bytes", GAUGE, "Virtual memory",
	  ONE(process.virtual_bytes) },
	{ "process_open_fds", GAUGE, "Open file descriptors", ONE(process.fds) },
	{ "process_max_fds", GAUGE, "Most file descriptors that can be open",
	  ONE(process.max_fds) },
	{ "process_start_time_seconds", GAUGE,
	  "When the process started, since 1970", ONE(process.start_ms),
	  .digits = 3 },
};

const size_t metrics_table_size = ARRAY_SIZE(metrics_table);
