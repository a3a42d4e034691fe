/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <netobs/services.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/options.h"
#include "base/util.h"
#include "services.h"
#include "record/any.h"

struct netobs_services {
	struct conversations *conversations;
	struct edges edges;
	bool has_sessions;
	bool has_rows;
	struct slots lines; /* hashes of lines and their reporters */
	struct netobs_services_stats *stats; /* of the conversations */

	/* The rows. */
	uint32_t n; /* edges that have one */
	struct edge_sum others, total;
	uint64_t n_others;
	struct netobs_edge row;
};

int netobs_services_new(const struct netobs_services_opts *opts,
			struct netobs_services **ret_services)
{
	struct netobs_services_opts known = { 0 };
	const struct log log = { 0 };
	struct netobs_services *services;

	if (!ret_services || (opts && sized_check(opts, sizeof(known), &log)))
		return -EINVAL;
	if (opts)
		memcpy(&known, opts, min_u64(opts->sz, sizeof(known)));
	if (known.max_edges == 1 || known.max_edges > SLOTS_MAX)
		return -EINVAL;
	services = calloc(1, sizeof(*services));
	if (!services)
		return -ENOMEM;
	services->conversations = conversations_new();
	services->edges.max = known.max_edges ?: EDGES_MAX;
	services->has_sessions = known.has_sessions;
	if (services->conversations) {
		services->stats = conversations_totals(services->conversations);
		*ret_services = services;
		return 0;
	}
	free(services);
	return -ENOMEM;
}

void netobs_services_free(struct netobs_services *services)
{
	if (!services)
		return;
	conversations_free(services->conversations);
	edges_free(&services->edges);
	slots_free(&services->lines);
	free(services);
}

/* ---- Records --------------------------------------------------------------------------- */

static int find_reporter(struct netobs_services *services, const char *identity,
			 const char *name, uint32_t *ret_reporter)
{
	identity = identity ?: "this host";
	return conversations_reporter(services->conversations, identity,
				      name ?: identity, ret_reporter);
}

static int add_report(struct netobs_services *services, uint32_t reporter,
		      const struct service_report *report)
{
	services->stats->records++;
	services->has_sessions |= report->kind == REPORT_SESSION;
	return conversations_add(services->conversations, reporter, report);
}

int netobs_services_add(struct netobs_services *services, const char *host,
			const struct netobs_record *record)
{
	struct service_report report = { .kind = REPORT_NONE };
	union any_record copy;
	uint32_t reporter;

	record = services && record ? record_view(record, &copy) : NULL;
	if (!record)
		return -EINVAL;
	if (record->type == NETOBS_RECORD_FLOW)
		report_of_flow(as_flow(record), &report);
	else if (record->type == NETOBS_RECORD_SESSION)
		report_of_session((const struct netobs_session *)record, &report);
	if (report.kind == REPORT_NONE) {
		services->stats->other_records++;
		return 0;
	}
	return find_reporter(services, host, NULL, &reporter) ?:
		       add_report(services, reporter, &report);
}

/* @return whether the line of this reporter is new */
static bool note_line(struct netobs_services *services, const char *line,
		      uint32_t reporter)
{
	struct slots *lines = &services->lines;
	const uint32_t n = lines->n;
	const uint64_t line_and_reporter[] = {
		slots_hash(lines, line, strlen(line)), reporter
	};
	const uint64_t hash =
		slots_hash(lines, line_and_reporter, sizeof(line_and_reporter));

	if (n < NETOBS_SERVICES_LINES_MAX &&
	    slots_get(lines, &hash, sizeof(hash), sizeof(hash)) != SLOT_NONE)
		return lines->n > n;
	services->stats->unchecked_records++;
	return true;
}

int netobs_services_add_json(struct netobs_services *services, const char *host,
			     const char *json, char *error, size_t size)
{
	char why[REPORT_WHY_MAX] = "it is no JSON object";
	const struct json_value record = json ? json_parse(json) :
						(struct json_value){ 0 };
	struct report_origin origin;
	struct service_report report;
	uint32_t reporter;
	int r;

	if (!services || !record.at || *record.at != '{' ||
	    !report_read(record, &report, &origin, why)) {
		if (error && size)
			snprintf(error, size, "%s", why);
		return -EINVAL;
	}
	if (report.kind == REPORT_NONE) {
		services->stats->other_records++;
		return 0;
	}
	r = *origin.identity ? find_reporter(services, origin.identity,
					     origin.name, &reporter) :
			       find_reporter(services, host, NULL, &reporter);
	if (!r && !note_line(services, json, reporter)) {
		services->stats->repeated_records++;
		return 0;
	}
	return r ?: add_report(services, reporter, &report) ?: 1;
}

int netobs_services_stats_get(const struct netobs_services *services,
			      struct netobs_services_stats *ret_stats)
{
	return services && ret_stats ? sized_fill(ret_stats, services->stats,
						  sizeof(*services->stats)) :
				       -EINVAL;
}

/* ---- Rows ------------------------------------------------------------------------------ */

int netobs_services_rows(struct netobs_services *services, uint64_t most)
{
	struct edges *edges;
	int r;

	if (!services)
		return -EINVAL;
	edges = &services->edges;
	services->has_rows = true;
	r = conversations_take(services->conversations, edges);
	edges_sort(edges);
	services->n = (uint32_t)min_u64(most ?: UINT64_MAX, edges->all.n);
	services->others = services->total = edges->others;
	services->n_others = edges->n_others + edges->all.n - services->n;
	for (uint32_t i = 0; i < edges->all.n; i++) {
		const struct edge_sum *sum = &edge_at(edges, i)->sum;

		edge_sum_add(&services->total, sum);
		if (i >= services->n)
			edge_sum_add(&services->others, sum);
	}
	return r ?: (int)services->n + !!services->n_others + 1;
}

static void set_sum(struct netobs_edge *row, const struct edge_sum *sum)
{
	const struct edge_counts *counts = &sum->counts;

	row->hosts = sum->hosts;
	row->start_ms = sum->start_ms;
	row->end_ms = sum->end_ms;
	row->conversations = counts->conversations;
	memcpy(row->packets, counts->packets, sizeof(row->packets));
	memcpy(row->bytes, counts->bytes, sizeof(row->bytes));
	row->retransmits = counts->retransmits;
	row->rtt_ns = edge_rtt_ns(counts);
	row->rtt_samples = counts->rtt_samples[TO_SERVICE] +
			   counts->rtt_samples[TO_CLIENT];
	row->response_ns = edge_response_ns(counts);
	row->responses = counts->responses;
	row->connections = counts->connections;
	row->refused = counts->refused;
	row->resets = counts->resets;
	row->timeouts = counts->timeouts;
	row->failed = counts->failed;
	row->repeated_packets = counts->repeated_packets;
	row->lost_bytes = counts->lost_bytes;
	row->loss_conversations = counts->loss_conversations;
}

static void set_edge(const struct netobs_services *services,
		     const struct edge *edge, struct netobs_edge *row)
{
	const struct conversations *all = services->conversations;
	const struct edge_sum *sum = &edge->sum;

	memcpy(row->client, edge->key.client, sizeof(row->client));
	memcpy(row->service, edge->key.service, sizeof(row->service));
	row->port = edge->key.port;
	row->proto = edge->key.proto;
	row->evidence = sum->evidence;
	row->missing_bytes = edge->missing_bytes;
	for (int i = 0; i < 2; i++) {
		const uint32_t reporter = sum->counted_by[i];
		const enum edge_end end = (enum edge_end)i;

		if (reporter)
			row->counted_by[i] =
				conversations_reporter_name(all, reporter - 1);
		row->processes[i] =
			conversations_name(all, sum, end, NAME_PROCESS);
		row->workloads[i] =
			conversations_name(all, sum, end, NAME_WORKLOAD);
	}
}

const struct netobs_edge *netobs_services_row(struct netobs_services *services,
					      size_t i)
{
	struct netobs_edge *row = services ? &services->row : NULL;
	const struct edge_sum *sum;

	if (!row)
		return NULL;
	*row = (struct netobs_edge){ .sz = sizeof(*row), .edges = 1 };
	if (i < services->n) {
		sum = &edge_at(&services->edges, (uint32_t)i)->sum;
		set_edge(services, edge_at(&services->edges, (uint32_t)i), row);
	} else if (i == services->n && services->n_others) {
		sum = &services->others;
		row->type = NETOBS_EDGE_OTHERS;
		row->edges = services->n_others;
	} else if (services->has_rows && i == services->n + !!services->n_others) {
		sum = &services->total;
		row->type = NETOBS_EDGE_TOTAL;
		row->edges = services->n + services->n_others;
	} else {
		return NULL;
	}
	set_sum(row, sum);
	if (services->has_sessions)
		row->has |= NETOBS_EDGE_HAS_SESSIONS;
	return row;
}

void netobs_services_clear(struct netobs_services *services)
{
	if (!services)
		return;
	edges_clear(&services->edges);
	services->others = services->total = (struct edge_sum){ 0 };
	services->n_others = services->n = 0;
	services->has_rows = false;
}

/* ---- JSON ------------------------------------------------------------------------------ */

static void put_address(struct json *json, const char *key, const uint8_t ip[16])
{
	char text[NETOBS_ADDR_STR_MAX + TEXT_SPARE];

	*text_ip(text, ip) = '\0';
	json_key_string(json, key, text);
}

static void put_optional(struct json *json, const char *key, uint64_t value)
{
	if (value)
		json_key_u64(json, key, value);
}

static void put_names(struct json *json, const char *const keys[2],
		      const char *const names[2])
{
	for (int i = 0; i < 2; i++)
		if (names[i])
			json_key_string(json, keys[i], names[i]);
}

static void put_ends(struct json *json, const struct netobs_edge *edge)
{
	static const char *const evidence[] = {
		[EVIDENCE_HANDSHAKE] = "handshake",
		[EVIDENCE_ANSWERS] = "answers",
		[EVIDENCE_ACCEPTS] = "accepts",
		[EVIDENCE_PORT] = "port",
	};
	static const char *const processes[] = { "ClientProcess",
						 "ServerProcess" };
	static const char *const workloads[] = { "ClientWorkload",
						 "ServerWorkload" };

	put_address(json, "ClientAddr", edge->client);
	put_address(json, "ServerAddr", edge->service);
	put_optional(json, "ServerPort", edge->port);
	json_key_u64(json, "Proto", edge->proto);
	json_key_string(json, "ServerBy",
			evidence[edge->evidence % ARRAY_SIZE(evidence)]);
	put_names(json, processes, edge->processes);
	put_names(json, workloads, edge->workloads);
}

static void put_counts(struct json *json, const struct netobs_edge *edge)
{
	json_key_u64(json, "Conversations", edge->conversations);
	json_key_u64(json, "Packets", edge->packets[0] + edge->packets[1]);
	json_key_u64(json, "Bytes", edge->bytes[0] + edge->bytes[1]);
	json_key_u64(json, "SentPackets", edge->packets[0]);
	json_key_u64(json, "SentBytes", edge->bytes[0]);
	if (edge->has & NETOBS_EDGE_HAS_SESSIONS) {
		json_key_u64(json, "Connections", edge->connections);
		json_key_u64(json, "Refused", edge->refused);
		json_key_u64(json, "Resets", edge->resets);
		json_key_u64(json, "Timeouts", edge->timeouts);
		json_key_u64(json, "Failed", edge->failed);
	}
	json_key_u64(json, "Retransmits", edge->retransmits);
	put_optional(json, "RttNs", edge->rtt_ns);
	put_optional(json, "RttSamples", edge->rtt_samples);
	put_optional(json, "ResponseTimeNs", edge->response_ns);
	put_optional(json, "AppResponses", edge->responses);
	json_key_u64(json, "RepeatedPackets", edge->repeated_packets);
	if (edge->loss_conversations) {
		json_key_u64(json, "LostBytes", edge->lost_bytes);
		json_key_u64(json, "LossConversations", edge->loss_conversations);
	}
}

int netobs_edge_json(const struct netobs_edge *edge, int64_t time_ms,
		     int64_t duration_ms, char *buf, size_t size)
{
	static const char *const types[] = { "edge", "others", "total" };
	static const char *const counted_by[] = { "CountedBy", "BackCountedBy" };
	struct json json;

	if (!edge || edge->sz < sizeof(*edge) ||
	    edge->type >= ARRAY_SIZE(types) || !buf)
		return -EINVAL;
	json_begin(&json, buf, size);
	json_open(&json, '{');
	json_key_string(&json, "type", types[edge->type]);
	json_key_i64(&json, "TimeMs", time_ms);
	json_key_i64(&json, "DurationMs", duration_ms);
	if (edge->type == NETOBS_EDGE)
		put_ends(&json, edge);
	if (edge->end_ms) {
		json_key_i64(&json, "TimeFlowStartMs", edge->start_ms);
		json_key_i64(&json, "TimeFlowEndMs", edge->end_ms);
	}
	put_counts(&json, edge);
	if (edge->type == NETOBS_EDGE) {
		put_optional(&json, "Hosts", edge->hosts);
		put_names(&json, counted_by, edge->counted_by);
		put_optional(&json, "MissingBytesMax", edge->missing_bytes);
	}
	json_close(&json, '}');
	return json_end(&json);
}
