/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The status of a service for people. */
#include "control_request.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "service/text/human.h"

enum { WORD_MAX = 32, TEXT_MAX = 256 };

/* ---- Values ----------------------------------------------------------------------- */

static const char *get_text(struct json_value value, const char *path,
			    char (*buf)[TEXT_MAX])
{
	json_get_text(value, path, *buf, sizeof(*buf));
	safe_cell(*buf);
	return *buf;
}

static uint64_t get_number(struct json_value value, const char *path)
{
	return json_number(json_get(value, path));
}

static void print_bytes(const char *label, uint64_t bytes)
{
	char text[WORD_MAX];

	human_bytes(text, sizeof(text), bytes);
	printf("%s%s", label, text);
}

/* Since a time, until that of the status. */
static void print_since(const char *label, struct json_value status,
			int64_t since_ms)
{
	const int64_t ms = json_signed(json_get(status, "time_ms")) - since_ms;
	char text[WORD_MAX];

	human_duration(text, sizeof(text), ms * NSEC_PER_MSEC);
	printf("%s%s", label, text);
}

static void print_count(const char *name, struct json_value count)
{
	char bytes[WORD_MAX];

	human_bytes(bytes, sizeof(bytes), get_number(count, "bytes"));
	printf("  %-24s %16" PRIu64 "  %10s\n", name,
	       get_number(count, "packets"), bytes);
}

/* ---- Parts ------------------------------------------------------------------------ */

static void print_service(struct json_value answer, struct json_value status)
{
	struct json_value configuration = json_get(status, "configuration");
	struct json_item file = { 0 };
	char text[TEXT_MAX];
	bool is_first = true;

	printf("netobs %s, process %" PRIu64,
	       get_text(answer, "version", &text), get_number(status, "pid"));
	print_since(", running for ", status,
		    json_signed(json_get(status, "started_ms")));
	printf("\nConfiguration: ");
	while (json_next(json_get(configuration, "files"), &file)) {
		printf("%s%s", is_first ? "" : ", ",
		       get_text(file.value, "", &text));
		is_first = false;
	}
	if (get_number(configuration, "reloads"))
		print_since(
			json_is_true(json_get(configuration, "last_reload_ok")) ?
				"; read again " :
				"; refused when it was read again ",
			status,
			json_signed(json_get(configuration, "last_reload_ms")));
	printf("%s\nLog: level %s, %" PRIu64 " errors, %" PRIu64 " warnings\n",
	       get_number(configuration, "reloads") ? " ago" : "",
	       get_text(status, "log_level", &text),
	       get_number(status, "errors"), get_number(status, "warnings"));
}

static void print_reasons(struct json_value reasons, const char *label)
{
	struct json_item item = { 0 };
	char reason[64], name[128];

	while (json_next(reasons, &item)) {
		if (!get_number(item.value, "packets"))
			continue;
		json_text(item.key, reason, sizeof(reason));
		safe_cell(reason);
		snprintf(name, sizeof(name), "%s: %s", label, reason);
		print_count(name, item.value);
	}
}

/* Print drops of observed flows; print_drops() prints those of records of drops. */
static void print_flow_drops(struct json_value packets)
{
	const struct json_value drops = json_get(packets, "drops");

	if (!drops.at)
		return;
	printf("  dropped: in flows %" PRIu64 ", in none %" PRIu64
	       ", without addresses %" PRIu64 ", without room %" PRIu64
	       ", pending %" PRIu64 "\n",
	       get_number(drops, "in_flows_packets"),
	       get_number(drops, "no_flow_packets"),
	       get_number(drops, "no_tuple_packets"),
	       get_number(drops, "no_room_packets"),
	       get_number(drops, "pending_packets"));
}

static void print_packets(struct json_value status)
{
	static const char *const terms[][2] = { { "exported", "exported" },
						{ "pending", "pending" },
						{ "filtered", "filtered" },
						{ "sampled_out", "sampled out" } };
	struct json_value packets = json_get(status, "packets");
	const int64_t difference =
		json_signed(json_get(status, "difference.packets"));
	char interval[WORD_MAX];

	printf("\nPackets%37s  %10s\n", "packets", "bytes");
	if (!get_number(status, "drains.total")) {
		human_duration(interval, sizeof(interval),
			       json_signed(json_get(status, "interval_ms")) *
				       NSEC_PER_MSEC);
		printf("  are counted at the end of each interval of %s; the first one has not ended yet.\n",
		       interval);
		return;
	}
	print_count("seen", json_get(packets, "seen"));
	for (size_t i = 0; i < ARRAY_SIZE(terms); i++)
		if (get_number(json_get(packets, terms[i][0]), "packets"))
			print_count(terms[i][1], json_get(packets, terms[i][0]));
	print_reasons(json_get(packets, "unparsed"), "unparsed");
	print_reasons(json_get(packets, "lost"), "lost");
	if (difference || json_signed(json_get(status, "difference.bytes")))
		printf("  %" PRId64 " packets are not accounted for\n",
		       difference);
	else
		printf("  All packets are accounted for.\n");
	print_flow_drops(packets);
}

/* The container or pod at the other end of a pair. */
static void print_container(struct json_value interface)
{
	char id[TEXT_MAX], uid[TEXT_MAX];

	if (*get_text(interface, "container_id", &id))
		printf("    to container %s\n", id);
	if (*get_text(interface, "pod_uid", &uid))
		printf("    to pod %s\n", uid);
}

/* Packets seen, and below them the packets that are in no flow. */
static void print_crossings(const char *name, struct json_value crossings)
{
	static const char *const outcomes[][2] = {
		{ "filtered", "    filtered" },
		{ "sampled_out", "    sampled out" },
		{ "unparsed", "    unparsed" },
		{ "lost", "    lost" },
	};

	print_count(name, json_get(crossings, "seen"));
	for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++) {
		struct json_value count = json_get(crossings, outcomes[i][0]);

		if (get_number(count, "packets"))
			print_count(outcomes[i][1], count);
	}
}

static void print_interfaces(struct json_value status)
{
	struct json_item item = { 0 };
	char netns[TEXT_MAX], interface[TEXT_MAX], name[2 * TEXT_MAX + 8];

	printf("\nInterfaces: %" PRIu64 " observed",
	       get_number(status, "observed_interfaces"));
	if (get_number(status, "shadowed_directions"))
		printf(", %" PRIu64
		       " directions where other programs may hide packets",
		       get_number(status, "shadowed_directions"));
	printf("\n");
	while (json_next(json_get(status, "interfaces"), &item)) {
		get_text(item.value, "netns", &netns);
		get_text(item.value, "name", &interface);
		snprintf(name, sizeof(name), "%s%s%s in", netns,
			 *netns ? "/" : "", interface);
		print_crossings(name, json_get(item.value, "ingress"));
		print_crossings("  out", json_get(item.value, "egress"));
		print_container(item.value);
	}
}

static void print_rule(struct json_value rule)
{
	char action[TEXT_MAX], filter[TEXT_MAX];
	uint64_t out = get_number(rule, "sampled_out.packets");

	printf("  %-8s %16" PRIu64 " packets  %s\n",
	       get_text(rule, "action", &action), get_number(rule, "packets"),
	       get_text(rule, "filter", &filter));
	if (out)
		printf("  %-8s %16" PRIu64 " sampled out\n", "", out);
}

static void print_rules(struct json_value status)
{
	struct json_value rules = json_get(status, "rules");
	struct json_item item = { 0 };

	if (!rules.at)
		return;
	printf("\nRules\n");
	while (json_next(rules, &item))
		print_rule(item.value);
}

static void print_alert(struct json_value alert)
{
	char name[TEXT_MAX], rule[TEXT_MAX];

	get_text(alert, "name", &name);
	printf("  %s%s%s\n    %" PRIu64 " alerts; %" PRIu64
	       " not sent because of hold, %" PRIu64
	       " because of limit; %" PRIu64 " lost\n",
	       name, *name ? ": " : "", get_text(alert, "rule", &rule),
	       get_number(alert, "fired"), get_number(alert, "held"),
	       get_number(alert, "limited"), get_number(alert, "lost"));
}

static void print_alerts(struct json_value status)
{
	struct json_item item = { 0 };
	bool is_first = true;

	while (json_next(json_get(status, "alerts"), &item)) {
		if (is_first)
			printf("\nAlerts\n");
		is_first = false;
		print_alert(item.value);
	}
}

static void print_sessions(struct json_value status)
{
	struct json_value sessions = json_get(status, "sessions");

	if (!sessions.at)
		return;
	printf("\nSessions\n  %" PRIu64 " open; %" PRIu64 " ended: %" PRIu64
	       " reported, %" PRIu64 " of other processes, %" PRIu64
	       " lost; %" PRIu64 " reports of open ones\n",
	       get_number(sessions, "open"), get_number(sessions, "ended"),
	       get_number(sessions, "reported"), get_number(sessions, "left_out"),
	       get_number(sessions, "lost"), get_number(sessions, "updates"));
}

static void print_drops(struct json_value status)
{
	const struct json_value drops = json_get(status, "drops");
	struct json_item item = { 0 };
	char reason[64], kind[16];

	if (!drops.at)
		return;
	printf("\nDrops\n");
	while (json_next(json_get(drops, "reasons"), &item)) {
		json_get_text(item.value, "reason", reason, sizeof(reason));
		json_get_text(item.value, "kind", kind, sizeof(kind));
		printf("  %s (%s): %" PRIu64 "\n", *reason ? reason : "no reason",
		       kind, get_number(item.value, "packets"));
	}
	printf("  in no record: %" PRIu64 " for want of room, %" PRIu64
	       " in interrupts\n",
	       get_number(drops, "lost"), get_number(drops, "missed"));
}

static void print_trace(struct json_value status)
{
	const struct json_value trace = json_get(status, "trace");

	if (!trace.at)
		return;
	printf("\nTraced for alerts\n");
	printf("  connections now: %" PRIu64 "; alerts: %" PRIu64
	       " traced, %" PRIu64 " refused, %" PRIu64
	       " waiting for the tracer\n",
	       get_number(trace, "connections"), get_number(trace, "armed"),
	       get_number(trace, "refused"), get_number(trace, "waiting"));
	printf("  journeys: %" PRIu64 ", %" PRIu64 " of them complete\n",
	       get_number(trace, "journeys"),
	       get_number(trace, "complete_journeys"));
	printf("  events: %" PRIu64 "; missing: %" PRIu64
	       " beyond max_events, %" PRIu64 " beyond max_rate, %" PRIu64
	       " without room\n",
	       get_number(trace, "events"),
	       get_number(trace, "cut_by_connection"),
	       get_number(trace, "cut_by_rate"),
	       get_number(trace, "lost_events"));
}

static void print_share(const char *label, struct json_value group,
			const char *part)
{
	const struct json_value counts = json_get(group, part);
	const uint64_t packets = get_number(counts, "packets");
	const uint64_t bytes = get_number(counts, "bytes");

	if (!packets)
		return;
	printf("    %s: %" PRIu64 " packets, %.3g %%", label, packets,
	       100.0 * (double)packets / (double)get_number(group, "all.packets"));
	print_bytes("; ", bytes);
	printf(", %.3g %%\n",
	       100.0 * (double)bytes / (double)get_number(group, "all.bytes"));
}

/* Print the values that are observed. */
static void print_group_health(struct json_value group)
{
	const struct json_value all = json_get(group, "all");
	static const struct {
		const char *key, *label;
	} counts[] = {
		{ "connections", "connections" },
		{ "connections_failed", "of these failed" },
		{ "retransmits", "segments retransmitted" },
		{ "drop_packets", "packets dropped" },
	};
	const char *before = "    ";

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		if (!json_get(all, counts[i].key).at)
			continue;
		printf("%s%" PRIu64 " %s", before,
		       get_number(all, counts[i].key), counts[i].label);
		before = ", ";
	}
	if (*before == ',')
		putchar('\n');
}

static void print_groups(struct json_value status)
{
	const struct json_value groups = json_get(status, "groups");
	struct json_item item = { 0 };
	char name[TEXT_MAX], by[TEXT_MAX];

	if (!groups.at)
		return;
	printf("\nGroups\n");
	while (json_next(groups, &item)) {
		printf("  %s: by %s: %" PRIu64 " of %" PRIu64
		       " series; %" PRIu64 " flows\n",
		       get_text(item.value, "name", &name),
		       get_text(item.value, "by", &by),
		       get_number(item.value, "series"),
		       get_number(item.value, "max_series"),
		       get_number(item.value, "all.flows"));
		print_group_health(item.value);
		print_share("without a series", item.value, "other");
		print_share("of series that have ended", item.value, "left");
	}
}

static void print_drain_time(struct json_value drains, const char *label,
			     const char *path)
{
	char text[WORD_MAX];

	if (!get_number(drains, path))
		return;
	human_duration(text, sizeof(text),
		       (int64_t)get_number(drains, path) * 1000);
	printf("%s%s", label, text);
}

static void print_kept(struct json_value status)
{
	struct json_item key = { 0 };
	const char *before = "Only after 'netobsctl detach' take effect: ";
	char text[TEXT_MAX];

	while (json_next(json_get(status, "kept_keys"), &key)) {
		printf("%s%s", before, get_text(key.value, "", &text));
		before = ", ";
	}
	if (*before == ',')
		printf("\n");
}

static void print_connections(struct json_value status)
{
	struct json_value connections = json_get(status, "connections");

	if (!connections.at)
		return;
	printf("Connections: %" PRIu64 " of %" PRIu64 " places used",
	       get_number(connections, "used"), get_number(connections, "max"));
	print_bytes(", ", get_number(connections, "memory"));
	printf("; evicted for others: %" PRIu64 " half-open, %" PRIu64
	       " closed and %" PRIu64
	       " idle ones; not measured, as no place was free: %" PRIu64
	       " packets\n",
	       get_number(connections, "evicted.half_open"),
	       get_number(connections, "evicted.closed"),
	       get_number(connections, "evicted.idle"),
	       get_number(connections, "refused_packets"));
}

static void print_mappings(struct json_value status)
{
	struct json_value mappings = json_get(status, "mappings");

	if (!mappings.at)
		return;
	printf("NAT: %" PRIu64 " mappings in use; since the start, %" PRIu64
	       " began, %" PRIu64 " ended and %" PRIu64
	       " were forgotten; refused, as the table was "
	       "full: %" PRIu64 "; reports lost: %" PRIu64
	       "; ambiguous: %" PRIu64 "\n",
	       get_number(mappings, "active"), get_number(mappings, "begun"),
	       get_number(mappings, "ended"), get_number(mappings, "forgotten"),
	       get_number(mappings, "refused"),
	       get_number(mappings, "lost_reports"),
	       get_number(mappings, "ambiguous"));
}

static void print_tables(struct json_value status)
{
	struct json_value tables = json_get(status, "tables");
	struct json_value drains = json_get(status, "drains");

	printf("\nTables: %" PRIu64 " flows of %" PRIu64 " at most",
	       get_number(tables, "flows"), get_number(tables, "max_flows"));
	print_bytes(", ", get_number(tables, "flow_memory"));
	print_bytes(" in the process, ", get_number(tables, "kernel_memory"));
	printf(" in the kernel; %" PRIu64 " packets through overflow tables\n",
	       get_number(tables, "spilled.packets"));
	print_connections(status);
	print_mappings(status);
	print_kept(status);
	printf("Drains: %" PRIu64 ", %" PRIu64 " ahead of time",
	       get_number(drains, "total"), get_number(drains, "early"));
	print_drain_time(drains, "; half of them within ", "median_us");
	print_drain_time(drains, ", 99 % within ", "p99_us");
	print_drain_time(drains, ", all within ", "max_us");
	printf("\n");
}

static uint64_t sum_dropped(struct json_value sink)
{
	struct json_item item = { 0 };
	uint64_t sum = 0;

	while (json_next(json_get(sink, "dropped"), &item))
		sum += get_number(item.value, "records");
	return sum;
}

static void print_sinks(struct json_value status)
{
	struct json_item item = { 0 };
	char name[TEXT_MAX], sink[TEXT_MAX], state[TEXT_MAX];

	printf("\nSinks\n");
	while (json_next(json_get(status, "sinks"), &item)) {
		struct json_value since = json_get(item.value, "outage_since_ms");

		printf("  %s: %s: %s", get_text(item.value, "name", &name),
		       get_text(item.value, "sink", &sink),
		       get_text(item.value, "state", &state));
		if (since.at)
			print_since(" for ", status, json_signed(since));
		printf("\n    %" PRIu64 " records delivered, %" PRIu64
		       " pending, %" PRIu64 " dropped",
		       get_number(item.value, "delivered.records"),
		       get_number(item.value, "pending.records"),
		       sum_dropped(item.value));
		print_bytes("; spool: ", get_number(item.value, "spool_bytes"));
		print_bytes(" of ", get_number(item.value, "spool_max_bytes"));
		printf("\n");
	}
}

/* @return records that open sinks of this name have taken */
static uint64_t sum_taken(struct json_value status, const char *name)
{
	struct json_item item = { 0 };
	char found[TEXT_MAX];
	uint64_t sum = 0;

	while (json_next(json_get(status, "sinks"), &item))
		if (!strcmp(get_text(item.value, "name", &found), name))
			sum += get_number(item.value, "taken.records") +
			       get_number(item.value, "recovered.records");
	return sum;
}

/* Print totals if they exceed those of the open sinks: some were replaced or removed. */
static void print_totals(struct json_value status)
{
	struct json_item item = { 0 };
	char name[TEXT_MAX];

	while (json_next(json_get(status, "sink_totals"), &item)) {
		get_text(item.value, "name", &name);
		if (get_number(item.value, "taken.records") +
			    get_number(item.value, "recovered.records") ==
		    sum_taken(status, name))
			continue;
		printf("  %s, with sinks that reloads have closed:\n    %" PRIu64
		       " records delivered, %" PRIu64 " pending, %" PRIu64
		       " dropped, %" PRIu64 " kept on disk\n",
		       name, get_number(item.value, "delivered.records"),
		       get_number(item.value, "pending.records"),
		       sum_dropped(item.value),
		       get_number(item.value, "kept.records"));
	}
}

static void print_log(struct json_value status)
{
	struct json_item item = { 0 };
	char time[WORD_MAX], level[TEXT_MAX], text[TEXT_MAX];

	printf("\nLatest messages\n");
	while (json_next(json_get(status, "log"), &item)) {
		human_time(time, sizeof(time),
			   json_signed(json_get(item.value, "time_ms")) *
				   NSEC_PER_MSEC);
		printf("  %s %s: %s\n", time,
		       get_text(item.value, "level", &level),
		       get_text(item.value, "text", &text));
	}
}

void status_print(struct json_value answer)
{
	struct json_value status = json_get(answer, "status");

	print_service(answer, status);
	print_packets(status);
	print_interfaces(status);
	print_rules(status);
	print_alerts(status);
	print_sessions(status);
	print_drops(status);
	print_trace(status);
	print_groups(status);
	print_tables(status);
	print_sinks(status);
	print_totals(status);
	print_log(status);
}
