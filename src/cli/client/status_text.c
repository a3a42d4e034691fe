/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The status of a service for people. */
#include "client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

/* @member: see print() */
static void print_member(struct json_value value, const char *member)
{
	const size_t len = strcspn(member, ":}");
	const char *how = member[len] == ':' ? member + len + 1 : "";
	char path[48], text[TEXT_MAX];

	snprintf(path, sizeof(path), "%.*s", (int)len, member);
	if (*how == 't')
		get_text(value, path, &text);
	else if (*how == 'b')
		human_bytes(text, sizeof(text), get_number(value, path));
	else
		snprintf(text, sizeof(text), "%" PRIu64, get_number(value, path));
	printf("%*s", atoi(how + (*how == 't' || *how == 'b')), text);
}

/* @return whether the value of a member is neither missing nor 0 nor "" */
static bool has_member(struct json_value value, const char *member)
{
	char path[48], text[8];

	snprintf(path, sizeof(path), "%.*s", (int)strcspn(member, ":}"), member);
	json_get_text(value, path, text, sizeof(text));
	return *text || get_number(value, path);
}

/*
 * Print @format, in which {PATH} is the number at a path in @value, {PATH:16} one in 16 columns,
 * {PATH:b} bytes, and {PATH:t} a text; "-8" aligns to the left. Text in brackets is printed if its
 * first value is not 0 or empty. Nothing is printed of a missing value.
 */
static void print(struct json_value value, const char *format)
{
	if (!value.at)
		return;
	for (; *format; format++) {
		if (*format == '{') {
			print_member(value, format + 1);
			format = strchr(format, '}');
		} else if (*format == '[') {
			if (!has_member(value, strchr(format, '{') + 1))
				format = strchr(format, ']');
		} else if (*format != ']') {
			putchar(*format);
		}
	}
}

/* Print @format for each item of a list, and before the first one @heading. */
static void print_list(struct json_value list, const char *heading,
		       const char *format)
{
	struct json_item item = { 0 };

	for (; json_next(list, &item); heading = "") {
		fputs(heading, stdout);
		print(item.value, format);
	}
}

/* Print the time from @since_ms to that of the status. */
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
	printf("  %-24s ", name);
	print(count, "{packets:16}  {bytes:b10}\n");
}

/* ---- Parts ------------------------------------------------------------------------ */

static void print_service(struct json_value answer, struct json_value status)
{
	struct json_value configuration = json_get(status, "configuration");
	struct json_item file = { 0 };
	char text[TEXT_MAX];
	bool is_first = true;

	print(answer, "netobs {version:t}, process {status.pid}");
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
	if (get_number(configuration, "reloads"))
		printf(" ago");
	print(status,
	      "\nLog: level {log_level:t}, {errors} errors, {warnings} warnings\n");
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
	print(json_get(packets, "drops"),
	      "  dropped: in flows {in_flows_packets}, in none {no_flow_packets}, "
	      "without addresses {no_tuple_packets}, without room {no_room_packets}, "
	      "pending {pending_packets}\n");
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

	print(status,
	      "\nInterfaces: {observed_interfaces} observed"
	      "[, {shadowed_directions} directions where other programs may hide packets]\n");
	while (json_next(json_get(status, "interfaces"), &item)) {
		get_text(item.value, "netns", &netns);
		get_text(item.value, "name", &interface);
		snprintf(name, sizeof(name), "%s%s%s in", netns,
			 *netns ? "/" : "", interface);
		print_crossings(name, json_get(item.value, "ingress"));
		print_crossings("  out", json_get(item.value, "egress"));
		print(item.value, "[    to container {container_id:t}\n]"
				  "[    to pod {pod_uid:t}\n]");
	}
}

/* Print what rules, of packets and of alerts, have decided, and dropped packets. */
static void print_decisions(struct json_value status)
{
	const struct json_value drops = json_get(status, "drops");

	print_list(json_get(status, "rules"), "\nRules\n",
		   "  {action:t-8} {packets:16} packets  {filter:t}\n"
		   "[           {sampled_out.packets:16} sampled out\n]");
	print_list(json_get(status, "alerts"), "\nAlerts\n",
		   "  [{name:t}: ]{rule:t}\n    {fired} alerts; {held} not sent because of "
		   "hold, {limited} because of limit; {lost} lost\n");
	print(json_get(status, "sessions"),
	      "\nSessions\n  {open} open; {ended} ended: {reported} reported, "
	      "{left_out} of other processes, {lost} lost; {updates} reports of open ones\n");
	print(drops, "\nDrops\n");
	print_list(json_get(drops, "reasons"), "",
		   "  {kind:t}[, {reason:t}]: {packets}\n");
	print(drops,
	      "  in no record: {lost} for want of room, {missed} in interrupts\n");
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

static void print_tables(struct json_value status)
{
	struct json_value drains = json_get(status, "drains");

	print(json_get(status, "tables"),
	      "\nTables: {flows} flows of {max_flows} at most, {flow_memory:b} in the process, "
	      "{kernel_memory:b} in the kernel; {spilled.packets} packets through overflow tables\n");
	print(json_get(status, "connections"),
	      "Connections: {used} of {max} places used, {memory:b}; evicted for others: "
	      "{evicted.half_open} half-open, {evicted.closed} closed and {evicted.idle} "
	      "idle ones; not measured, as no place was free: {refused_packets} packets\n");
	print(json_get(status, "mappings"),
	      "NAT: {active} mappings in use; since the start, {begun} began, {ended} ended and "
	      "{forgotten} were forgotten; refused, as the table was full: {refused}; "
	      "reports lost: {lost_reports}; ambiguous: {ambiguous}\n");
	print_kept(status);
	print(drains, "Drains: {total}, {early} ahead of time");
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

	printf("\nSinks\n");
	while (json_next(json_get(status, "sinks"), &item)) {
		struct json_value since = json_get(item.value, "outage_since_ms");

		print(item.value, "  {name:t}: {sink:t}: {state:t}");
		if (since.at)
			print_since(" for ", status, json_signed(since));
		print(item.value,
		      "\n    {delivered.records} records delivered, {pending.records} pending, ");
		printf("%" PRIu64 " dropped", sum_dropped(item.value));
		print(item.value,
		      "; spool: {spool_bytes:b} of {spool_max_bytes:b}\n");
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
		print(item.value,
		      "  {name:t}, with sinks that reloads have closed:\n    "
		      "{delivered.records} records delivered, {pending.records} pending, ");
		printf("%" PRIu64, sum_dropped(item.value));
		print(item.value, " dropped, {kept.records} kept on disk\n");
	}
}

void status_print(struct json_value answer)
{
	struct json_value status = json_get(answer, "status");

	print_service(answer, status);
	print_packets(status);
	print_interfaces(status);
	print_decisions(status);
	print(json_get(status, "trace"),
	      "\nTraced for alerts\n"
	      "  connections now: {connections}; alerts: {armed} traced, {refused} refused, "
	      "{waiting} waiting for the tracer\n"
	      "  journeys: {journeys}, {complete_journeys} of them complete\n"
	      "  events: {events}; missing: {cut_by_connection} beyond max_events, "
	      "{cut_by_rate} beyond max_rate, {lost_events} without room\n");
	print(json_get(status, "diagnose"),
	      "\nVerdicts of alerts\n"
	      "  alerts: {followed} followed, {now} of them now; without a verdict: "
	      "{over_max} beyond max, {without_turns} without turns, {not_tcp} not of TCP\n"
	      "  verdicts: {certain} certain, {likely} likely, {not_sure} not sure\n");
	print_list(
		json_get(status, "groups"), "\nGroups\n",
		"  {name:t}: by {by:t}: {series} of {max_series} series; {all.flows} flows\n"
		"[    {all.connections} connections, {all.connections_failed} failed\n]"
		"[    {all.retransmits} segments retransmitted\n]"
		"[    {all.drop_packets} packets dropped\n]"
		"[    without a series: {other.packets} of {all.packets} packets, "
		"{other.bytes:b} of {all.bytes:b}\n]"
		"[    of series that have ended: {left.packets} of {all.packets} packets, "
		"{left.bytes:b} of {all.bytes:b}\n]");
	print_tables(status);
	print_sinks(status);
	print_totals(status);
}
