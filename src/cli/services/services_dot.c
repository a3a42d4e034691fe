/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The service map for Graphviz: a node is an address, an edge what one uses of another. */
#include "services_view.h"

#include "base/util.h"
#include "service/text/human.h"

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

void services_print_dot(const struct services_view *view)
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
