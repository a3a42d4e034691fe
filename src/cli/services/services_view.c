/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "services_view.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "cli/view/print.h"
#include "cli/view/row.h"
#include "service/text/human.h"

/* ---- Text ------------------------------------------------------------------------------ */

static void add_workload(char *buf, size_t size, const char *name)
{
	if (name)
		text_append(buf, size, " (%s)", name);
}

void services_label(char *buf, size_t size, const struct netobs_edge *edge)
{
	char proto[16], end[64];

	human_protocol(proto, sizeof(proto), edge->proto);
	if (edge->port)
		human_address(end, sizeof(end), edge->service, edge->port);
	else
		netobs_addr_str(edge->service, end, sizeof(end));
	snprintf(buf, size, "%s/%s", end, proto);
	add_workload(buf, size, edge->workloads[1]);
}

void services_client_label(char *buf, size_t size, const struct netobs_edge *edge)
{
	netobs_addr_str(edge->client, buf, size);
	add_workload(buf, size, edge->workloads[0]);
}

static void text_of_errors(char *buf, size_t size, const struct netobs_edge *edge)
{
	const struct {
		uint64_t n;
		const char *name;
	} kinds[] = {
		{ edge->refused, "refused" },
		{ edge->resets, "reset" },
		{ edge->timeouts, "timeout" },
		{ edge->failed, "failed" },
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

struct services_row {
	struct netobs_edge edge;
	int64_t duration_ns;
};

static void put_client(char *buf, size_t size, const struct netobs_edge *edge)
{
	if (edge->type == NETOBS_EDGE)
		services_client_label(buf, size, edge);
	else if (edge->type == NETOBS_EDGE_OTHERS)
		snprintf(buf, size, "%llu others",
			 (unsigned long long)edge->edges);
	else
		snprintf(buf, size, "total");
}

static void put_service(char *buf, size_t size, const struct netobs_edge *edge)
{
	if (edge->type == NETOBS_EDGE)
		services_label(buf, size, edge);
	else
		snprintf(buf, size, "-");
}

/* Text of what is known on a condition only. */
#define KNOWN_IF(condition, text) \
	((condition) ? (void)(text) : (void)snprintf(buf, size, "-"))

/* Columns, in the form of row.h. */
#define SERVICES_COLUMNS(_, type)                                              \
	_(type, CLIENT, "CLIENT", left, 0, 0, 1,                               \
	  put_client(buf, size, &row->edge))                                   \
	_(type, SERVICE, "SERVICE", left, 0, 0, 1,                             \
	  put_service(buf, size, &row->edge))                                  \
	_(type, RATE, "RATE", right, 0, 0, 1,                                  \
	  human_rate(buf, size, edge_bytes(&row->edge), row->duration_ns))     \
	_(type, BYTES, "BYTES", right, 0, 0, 1,                                \
	  human_bytes(buf, size, edge_bytes(&row->edge)))                      \
	_(type, PACKETS, "PACKETS", right, 0, 0, 1,                            \
	  human_count(buf, size, row->edge.packets[0] + row->edge.packets[1])) \
	_(type, CONNECTIONS, "CONNECTIONS", right, 0, 0, 1,                    \
	  KNOWN_IF(row->edge.has &NETOBS_EDGE_HAS_SESSIONS,                    \
		   human_count(buf, size, row->edge.connections)))             \
	_(type, ERRORS, "ERRORS", left, 0, 0, 1,                               \
	  KNOWN_IF(row->edge.has &NETOBS_EDGE_HAS_SESSIONS,                    \
		   text_of_errors(buf, size, &row->edge)))                     \
	_(type, RETRANSMITS, "RETRANSMITS", right, 0, 0, 1,                    \
	  human_count(buf, size, row->edge.retransmits))                       \
	_(type, LOST, "LOST", right, 0, 0, 1,                                  \
	  KNOWN_IF(row->edge.loss_conversations,                               \
		   human_bytes(buf, size, row->edge.lost_bytes)))              \
	_(type, RTT, "RTT", right, 0, 0, 1,                                    \
	  human_latency(buf, size, row->edge.rtt_ns))                          \
	_(type, HOSTS, "HOSTS", right, 0, 0, 1,                                \
	  KNOWN_IF(row->edge.hosts, snprintf(buf, size, "%u", row->edge.hosts)))

TABLE(services_columns, SERVICES_COLUMNS, struct services_row);

static size_t count_rows(const struct services_view *view)
{
	size_t n = 0;

	while (netobs_services_row(view->services, n))
		n++;
	return n;
}

/* @return 0; -ENOMEM */
static int print_table(const struct services_view *view, uint32_t width)
{
	const size_t n = count_rows(view);
	cleanup_free struct services_row *rows = calloc(n ?: 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct services_row){
			*netobs_services_row(view->services, i),
			view->duration_ms * NSEC_PER_MSEC
		};
	table_print(services_columns, ARRAY_SIZE(services_columns), rows,
		    sizeof(*rows), (uint32_t)n, 0, width);
	return 0;
}

static void print_json(const struct services_view *view)
{
	const struct netobs_edge *edge;
	char text[NETOBS_EDGE_JSON_MAX];

	for (size_t i = 0; (edge = netobs_services_row(view->services, i)); i++)
		if (netobs_edge_json(edge, view->time_ms, view->duration_ms,
				     text, sizeof(text)) > 0)
			puts(text);
}

/* ---- All of them ----------------------------------------------------------------------- */

int services_show(const struct map_options *options,
		  const struct services_view *view, uint32_t width)
{
	int r = 0;

	if (options->output == SERVICES_JSON)
		print_json(view);
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
