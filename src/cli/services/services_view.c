/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "services_view.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "service/text/human.h"
#include "cli/view/text_table.h"

enum { JSON_MAX = 4096 };

void services_view_make(struct services_view *view, struct edges *edges,
			uint32_t rows)
{
	edges_sort(edges);
	view->edges = edges;
	view->n = rows ? (uint32_t)min_u64(rows, edges->all.n) : edges->all.n;
	view->others = view->total = edges->others;
	view->n_others = edges->n_others + edges->all.n - view->n;
	for (uint32_t i = 0; i < edges->all.n; i++) {
		edge_sum_add(&view->total, &edge_at(edges, i)->sum);
		if (i >= view->n)
			edge_sum_add(&view->others, &edge_at(edges, i)->sum);
	}
}

/* ---- Text ------------------------------------------------------------------------------ */

static void add_workload(char *buf, size_t size, const struct services_view *view,
			 const struct edge *edge, enum edge_end end)
{
	const char *name = conversations_name(view->reporters, &edge->sum, end,
					      NAME_WORKLOAD);
	const size_t len = strlen(buf);

	if (name)
		snprintf(buf + len, size - len, " (%s)", name);
}

void services_label(char *buf, size_t size, const struct services_view *view,
		    const struct edge *edge)
{
	const struct edge_key *key = &edge->key;
	char proto[16], end[64];

	human_protocol(proto, sizeof(proto), key->proto);
	if (key->port)
		human_address(end, sizeof(end), key->service, key->port);
	else
		netobs_addr_str(key->service, end, sizeof(end));
	snprintf(buf, size, "%s/%s", end, proto);
	add_workload(buf, size, view, edge, END_SERVICE);
}

void services_client_label(char *buf, size_t size,
			   const struct services_view *view,
			   const struct edge *edge)
{
	netobs_addr_str(edge->key.client, buf, size);
	add_workload(buf, size, view, edge, END_CLIENT);
}

static void text_of_errors(char *buf, size_t size,
			   const struct edge_counts *counts)
{
	const struct {
		uint64_t n;
		const char *name;
	} kinds[] = {
		{ counts->refused, "refused" },
		{ counts->resets, "reset" },
		{ counts->timeouts, "timeout" },
		{ counts->failed, "failed" },
	};
	size_t len = 0;

	snprintf(buf, size, "0");
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && len < size; i++)
		if (kinds[i].n)
			len += (size_t)snprintf(buf + len, size - len,
						"%s%llu %s", len ? ", " : "",
						(unsigned long long)kinds[i].n,
						kinds[i].name);
}

enum column {
	CLIENT,
	SERVICE,
	RATE,
	BYTES,
	PACKETS,
	CONNECTIONS,
	ERRORS,
	RETRANSMITS,
	RTT,
	HOSTS,
	COLUMNS,
};

static const char *const headings[COLUMNS] = {
	[CLIENT] = "CLIENT",   [SERVICE] = "SERVICE",
	[RATE] = "RATE",       [BYTES] = "BYTES",
	[PACKETS] = "PACKETS", [CONNECTIONS] = "CONNECTIONS",
	[ERRORS] = "ERRORS",   [RETRANSMITS] = "RETRANSMITS",
	[RTT] = "RTT",	       [HOSTS] = "HOSTS",
};

static void fill_sum(const struct services_view *view,
		     const struct edge_sum *sum, char (*cells)[TEXT_CELL_MAX])
{
	const struct edge_counts *counts = &sum->counts;

	human_rate(cells[RATE], TEXT_CELL_MAX, edge_bytes(sum),
		   view->duration_ms * NSEC_PER_MSEC);
	human_bytes(cells[BYTES], TEXT_CELL_MAX, edge_bytes(sum));
	human_count(cells[PACKETS], TEXT_CELL_MAX, edge_packets(sum));
	if (view->has_sessions) {
		human_count(cells[CONNECTIONS], TEXT_CELL_MAX,
			    counts->connections);
		text_of_errors(cells[ERRORS], TEXT_CELL_MAX, counts);
	} else {
		snprintf(cells[CONNECTIONS], TEXT_CELL_MAX, "-");
		snprintf(cells[ERRORS], TEXT_CELL_MAX, "-");
	}
	human_count(cells[RETRANSMITS], TEXT_CELL_MAX, counts->retransmits);
	human_latency(cells[RTT], TEXT_CELL_MAX, edge_rtt_ns(counts));
	if (sum->hosts)
		snprintf(cells[HOSTS], TEXT_CELL_MAX, "%u", sum->hosts);
	else
		snprintf(cells[HOSTS], TEXT_CELL_MAX, "-");
}

/* After the edges come the sum of all others, and the total. */
static void fill_row(const void *rows, uint32_t row, char (*cells)[TEXT_CELL_MAX])
{
	const struct services_view *view = rows;
	const bool has_others = view->n_others;

	if (row < view->n) {
		const struct edge *edge = edge_at(view->edges, row);

		services_client_label(cells[CLIENT], TEXT_CELL_MAX, view, edge);
		services_label(cells[SERVICE], TEXT_CELL_MAX, view, edge);
		fill_sum(view, &edge->sum, cells);
		return;
	}
	snprintf(cells[SERVICE], TEXT_CELL_MAX, "-");
	if (has_others && row == view->n) {
		snprintf(cells[CLIENT], TEXT_CELL_MAX, "%llu others",
			 (unsigned long long)view->n_others);
		fill_sum(view, &view->others, cells);
		return;
	}
	snprintf(cells[CLIENT], TEXT_CELL_MAX, "total");
	fill_sum(view, &view->total, cells);
}

void services_print_table(const struct services_view *view, uint32_t width)
{
	text_table_print(&(struct text_table){
		.headings = headings,
		.n_columns = COLUMNS,
		.right = 1 << RATE | 1 << BYTES | 1 << PACKETS | 1 << CONNECTIONS |
			 1 << RETRANSMITS | 1 << RTT | 1 << HOSTS,
		.n_rows = view->n + (view->n_others ? 2 : 1),
		.width = width,
		.fill = fill_row,
		.rows = view,
	});
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

static void put_counts(struct json *json, const struct services_view *view,
		       const struct edge_counts *counts)
{
	json_key_u64(json, "Conversations", counts->conversations);
	json_key_u64(json, "Packets",
		     counts->packets[TO_SERVICE] + counts->packets[TO_CLIENT]);
	json_key_u64(json, "Bytes",
		     counts->bytes[TO_SERVICE] + counts->bytes[TO_CLIENT]);
	json_key_u64(json, "SentPackets", counts->packets[TO_SERVICE]);
	json_key_u64(json, "SentBytes", counts->bytes[TO_SERVICE]);
	if (view->has_sessions) {
		json_key_u64(json, "Connections", counts->connections);
		json_key_u64(json, "Refused", counts->refused);
		json_key_u64(json, "Resets", counts->resets);
		json_key_u64(json, "Timeouts", counts->timeouts);
		json_key_u64(json, "Failed", counts->failed);
	}
	json_key_u64(json, "Retransmits", counts->retransmits);
	put_optional(json, "RttNs", edge_rtt_ns(counts));
	put_optional(json, "RttSamples",
		     counts->rtt_samples[TO_SERVICE] +
			     counts->rtt_samples[TO_CLIENT]);
	put_optional(json, "ResponseTimeNs", edge_response_ns(counts));
	put_optional(json, "AppResponses", counts->responses);
	json_key_u64(json, "RepeatedPackets", counts->repeated_packets);
}

static void put_reporters(struct json *json, const struct services_view *view,
			  const struct edge_sum *sum)
{
	static const char *const keys[EDGE_WAYS] = { "CountedBy",
						     "BackCountedBy" };

	put_optional(json, "Hosts", sum->hosts);
	for (int way = 0; way < EDGE_WAYS; way++)
		if (sum->counted_by[way])
			json_key_string(json, keys[way],
					conversations_reporter_name(
						view->reporters,
						sum->counted_by[way] - 1));
}

static void put_names(struct json *json, const struct services_view *view,
		      const struct edge *edge, enum name_kind kind)
{
	static const char *const keys[NAME_KINDS][EDGE_ENDS] = {
		[NAME_PROCESS] = { "ClientProcess", "ServerProcess" },
		[NAME_WORKLOAD] = { "ClientWorkload", "ServerWorkload" },
	};

	for (int end = 0; end < EDGE_ENDS; end++) {
		const char *name = conversations_name(
			view->reporters, &edge->sum, (enum edge_end)end, kind);

		if (name)
			json_key_string(json, keys[kind][end], name);
	}
}

static void put_key(struct json *json, const struct edge *edge)
{
	static const char *const evidence[] = {
		[EVIDENCE_HANDSHAKE] = "handshake",
		[EVIDENCE_ACCEPTS] = "accepts",
		[EVIDENCE_PORT] = "port",
	};

	put_address(json, "ClientAddr", edge->key.client);
	put_address(json, "ServerAddr", edge->key.service);
	put_optional(json, "ServerPort", edge->key.port);
	json_key_u64(json, "Proto", edge->key.proto);
	json_key_string(json, "ServerBy", evidence[edge->sum.evidence]);
}

static void print_sum(const struct services_view *view, const char *type,
		      const struct edge *edge, const struct edge_sum *sum)
{
	char text[JSON_MAX];
	struct json json;

	json_begin(&json, text, sizeof(text));
	json_open(&json, '{');
	json_key_string(&json, "type", type);
	json_key_i64(&json, "TimeMs", view->time_ms);
	json_key_i64(&json, "DurationMs", view->duration_ms);
	if (edge) {
		put_key(&json, edge);
		put_names(&json, view, edge, NAME_PROCESS);
		put_names(&json, view, edge, NAME_WORKLOAD);
	}
	if (sum->end_ms) {
		json_key_i64(&json, "TimeFlowStartMs", sum->start_ms);
		json_key_i64(&json, "TimeFlowEndMs", sum->end_ms);
	}
	put_counts(&json, view, &sum->counts);
	if (edge)
		put_reporters(&json, view, sum);
	json_close(&json, '}');
	if (json_end(&json) > 0)
		puts(text);
}

void services_print_json(const struct services_view *view)
{
	for (uint32_t i = 0; i < view->n; i++) {
		const struct edge *edge = edge_at(view->edges, i);

		print_sum(view, "edge", edge, &edge->sum);
	}
	if (view->n_others)
		print_sum(view, "others", NULL, &view->others);
	print_sum(view, "total", NULL, &view->total);
}

/* ---- All of them ----------------------------------------------------------------------- */

int services_show(const struct services_request *request,
		  const struct services_view *view, uint32_t width)
{
	int r;

	if (request->format == SERVICES_JSON)
		services_print_json(view);
	else if (request->format == SERVICES_DOT)
		services_print_dot(view);
	else
		services_print_table(view, width);
	r = text_flush("map");
	if (r == -EPIPE)
		r = 0;
	if (!r && request->svg) {
		r = services_write_svg(request->svg, view);
		if (r)
			fprintf(stderr, "netobsctl map: --svg %s: %s\n",
				request->svg, strerror(-r));
	}
	return r;
}
