/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "services_view.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "cli/view/print.h"
#include "cli/view/row.h"
#include "service/text/human.h"

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

	if (name)
		text_append(buf, size, " (%s)", name);
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

	*buf = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].n)
			text_append(buf, size, "%s%llu %s", *buf ? ", " : "",
				    (unsigned long long)kinds[i].n,
				    kinds[i].name);
	if (!*buf)
		snprintf(buf, size, "0");
}

/* An edge, or with a label the sum of many. */
struct services_row {
	const struct services_view *view;
	const struct edge *edge;
	const struct edge_sum *sum;
	char label[32];
};

static void put_client(char *buf, size_t size, const struct services_row *row)
{
	if (row->edge)
		services_client_label(buf, size, row->view, row->edge);
	else
		snprintf(buf, size, "%s", row->label);
}

static void put_service(char *buf, size_t size, const struct services_row *row)
{
	if (row->edge)
		services_label(buf, size, row->view, row->edge);
	else
		snprintf(buf, size, "-");
}

/* Text of what is known on a condition only. */
#define KNOWN_IF(condition, text) \
	((condition) ? (void)(text) : (void)snprintf(buf, size, "-"))

/* Columns, in the form of row.h. */
#define SERVICES_COLUMNS(_, type)                                               \
	_(type, CLIENT, "CLIENT", left, 0, 0, 1, put_client(buf, size, row))    \
	_(type, SERVICE, "SERVICE", left, 0, 0, 1, put_service(buf, size, row)) \
	_(type, RATE, "RATE", right, 0, 0, 1,                                   \
	  human_rate(buf, size, edge_bytes(row->sum),                           \
		     row->view->duration_ms *NSEC_PER_MSEC))                    \
	_(type, BYTES, "BYTES", right, 0, 0, 1,                                 \
	  human_bytes(buf, size, edge_bytes(row->sum)))                         \
	_(type, PACKETS, "PACKETS", right, 0, 0, 1,                             \
	  human_count(buf, size, edge_packets(row->sum)))                       \
	_(type, CONNECTIONS, "CONNECTIONS", right, 0, 0, 1,                     \
	  KNOWN_IF(row->view->has_sessions,                                     \
		   human_count(buf, size, row->sum->counts.connections)))       \
	_(type, ERRORS, "ERRORS", left, 0, 0, 1,                                \
	  KNOWN_IF(row->view->has_sessions,                                     \
		   text_of_errors(buf, size, &row->sum->counts)))               \
	_(type, RETRANSMITS, "RETRANSMITS", right, 0, 0, 1,                     \
	  human_count(buf, size, row->sum->counts.retransmits))                 \
	_(type, RTT, "RTT", right, 0, 0, 1,                                     \
	  human_latency(buf, size, edge_rtt_ns(&row->sum->counts)))             \
	_(type, HOSTS, "HOSTS", right, 0, 0, 1,                                 \
	  KNOWN_IF(row->sum->hosts, snprintf(buf, size, "%u", row->sum->hosts)))

/* clang-format off */
SERVICES_COLUMNS(TABLE_TEXT, struct services_row)

static const struct column services_columns[] = { SERVICES_COLUMNS(TABLE_COLUMN, ) };
/* clang-format on */

/* After the edges come the sum of all others, and the total. @return 0; -ENOMEM */
static int print_table(const struct services_view *view, uint32_t width)
{
	cleanup_free struct services_row *rows =
		calloc(view->n + 2, sizeof(*rows));
	uint32_t n = view->n;

	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct edge *edge = edge_at(view->edges, i);

		rows[i] = (struct services_row){ .view = view,
						 .edge = edge,
						 .sum = &edge->sum };
	}
	if (view->n_others) {
		rows[n] = (struct services_row){ .view = view,
						 .sum = &view->others };
		snprintf(rows[n].label, sizeof(rows[n].label), "%llu others",
			 (unsigned long long)view->n_others);
		n++;
	}
	rows[n] = (struct services_row){ .view = view,
					 .sum = &view->total,
					 .label = "total" };
	table_print(services_columns, ARRAY_SIZE(services_columns), rows,
		    sizeof(*rows), n + 1, 0, width);
	return 0;
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

static void print_json(const struct services_view *view)
{
	for (uint32_t i = 0; i < view->n; i++) {
		const struct edge *edge = edge_at(view->edges, i);

		print_sum(view, "edge", edge, &edge->sum);
	}
	if (view->n_others)
		print_sum(view, "others", NULL, &view->others);
	print_sum(view, "total", NULL, &view->total);
}

/* ---- For Graphviz: a node is an address, an edge what one uses of another --------------- */

static void print_node(const uint8_t ip[16])
{
	char text[NETOBS_ADDR_STR_MAX];

	netobs_addr_str(ip, text, sizeof(text));
	printf("\"%s\"", text);
}

/* A line is wider by a point for each tenfold of bytes. */
static double width_of(uint64_t bytes)
{
	double width = 0.5;

	for (; bytes >= 1000; bytes /= 10)
		width += 0.5;
	return width;
}

/* A node that has a name shows it below its address. */
static void name_node(const struct services_view *view, const struct edge *edge,
		      enum edge_end end, const uint8_t ip[16])
{
	const char *name = conversations_name(view->reporters, &edge->sum, end,
					      NAME_WORKLOAD);
	char text[NETOBS_ADDR_STR_MAX];

	if (!name)
		return;
	netobs_addr_str(ip, text, sizeof(text));
	printf("  \"%s\" [label=\"%s\\n%s\"];\n", text, text, name);
}

static void print_edge(const struct services_view *view, const struct edge *edge)
{
	const uint64_t errors = edge_errors(&edge->sum.counts);
	char proto[16], rate[32], rtt[32];

	human_protocol(proto, sizeof(proto), edge->key.proto);
	human_rate(rate, sizeof(rate), edge_bytes(&edge->sum),
		   view->duration_ms * NSEC_PER_MSEC);
	fputs("  ", stdout);
	print_node(edge->key.client);
	fputs(" -> ", stdout);
	print_node(edge->key.service);
	if (edge->key.port)
		printf(" [label=\"%s/%u\\n%s", proto, edge->key.port, rate);
	else
		printf(" [label=\"%s\\n%s", proto, rate);
	if (edge_rtt_ns(&edge->sum.counts)) {
		human_latency(rtt, sizeof(rtt), edge_rtt_ns(&edge->sum.counts));
		printf("\\nRTT %s", rtt);
	}
	if (errors)
		printf("\\n%llu error%s", (unsigned long long)errors,
		       errors == 1 ? "" : "s");
	printf("\", penwidth=%.1f%s];\n", width_of(edge_bytes(&edge->sum)),
	       errors ? ", color=\"#c03020\"" : "");
}

static void print_dot(const struct services_view *view)
{
	puts("digraph services {\n"
	     "  rankdir=LR;\n"
	     "  node [shape=box, fontname=\"sans-serif\"];\n"
	     "  edge [fontname=\"sans-serif\", fontsize=10];");
	for (uint32_t i = 0; i < view->n; i++)
		print_edge(view, edge_at(view->edges, i));
	for (uint32_t i = 0; i < view->n; i++) {
		const struct edge *edge = edge_at(view->edges, i);

		name_node(view, edge, END_CLIENT, edge->key.client);
		name_node(view, edge, END_SERVICE, edge->key.service);
	}
	if (view->n_others) {
		char bytes[32];

		human_bytes(bytes, sizeof(bytes), edge_bytes(&view->others));
		printf("  \"others\" [shape=plaintext, label=\"%llu others, %s\"];\n",
		       (unsigned long long)view->n_others, bytes);
	}
	puts("}");
}

/* ---- All of them ----------------------------------------------------------------------- */

int services_show(const struct map_options *options,
		  const struct services_view *view, uint32_t width)
{
	int r = 0;

	if (options->output == SERVICES_JSON)
		print_json(view);
	else if (options->output == SERVICES_DOT)
		print_dot(view);
	else
		r = print_table(view, width);
	if (r)
		fprintf(stderr, "netobsctl map: %s\n", strerror(-r));
	r = r ?: text_flush("map");
	if (r == -EPIPE)
		r = 0;
	if (!r && options->svg) {
		r = services_write_svg(options->svg, view);
		if (r)
			fprintf(stderr, "netobsctl map: --svg %s: %s\n",
				options->svg, strerror(-r));
	}
	return r;
}
