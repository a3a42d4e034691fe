/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "conversations.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/conversation.h"
#include "base/util.h"
#include "talks.h"

enum {
	FIRST_CAPACITY = 16,
	SERVERS_MAX = 1 << 20, /* later ones are not noted */
	LINKS_KEPT = 1 << 16,  /* more are forgotten with the conversations */
};

struct reporter {
	char *identity, *name;
};

/* An end that has accepted a conversation. */
struct server {
	uint8_t addr[16];
	uint16_t port;
	uint8_t proto;
	uint8_t zero[5];
};

struct conversations {
	struct talks talks;
	struct nat_links links;

	struct reporter *reporters;
	struct reporting *reporting; /* of each reporter */
	uint32_t n_reporters, reporters_capacity, reporting_capacity;
	struct slots reporter_slots;

	struct server *servers;
	uint32_t n_servers, servers_capacity;
	struct slots server_slots;

	struct conversation_totals totals;
};

struct conversations *conversations_new(void)
{
	return calloc(1, sizeof(struct conversations));
}

void conversations_free(struct conversations *all)
{
	if (!all)
		return;
	talks_free(&all->talks);
	nat_links_free(&all->links);
	for (uint32_t i = 0; i < all->n_reporters; i++) {
		free(all->reporters[i].identity);
		free(all->reporters[i].name);
	}
	free(all->reporters);
	free(all->reporting);
	slots_free(&all->reporter_slots);
	free(all->servers);
	slots_free(&all->server_slots);
	free(all);
}

/* ---- Reporters ------------------------------------------------------------------------- */

static bool is_reporter(const void *array, uint32_t index, const void *key)
{
	const struct reporter *list = array;

	return !strcmp(list[index].identity, key);
}

static int add_reporter(struct conversations *all, uint64_t hash,
			const char *identity, const char *name)
{
	struct reporter reporter = { strdup(identity), strdup(name) };

	if (!reporter.identity || !reporter.name ||
	    !array_reserve(&all->reporters, all->n_reporters,
			   &all->reporters_capacity, sizeof(*all->reporters),
			   FIRST_CAPACITY) ||
	    !array_reserve(&all->reporting, all->n_reporters,
			   &all->reporting_capacity, sizeof(*all->reporting),
			   FIRST_CAPACITY) ||
	    !slots_add(&all->reporter_slots, hash, all->n_reporters)) {
		free(reporter.identity);
		free(reporter.name);
		return -ENOMEM;
	}
	all->reporting[all->n_reporters] = (struct reporting){ 0 };
	all->reporters[all->n_reporters++] = reporter;
	return 0;
}

int conversations_reporter(struct conversations *all, const char *identity,
			   const char *name, uint32_t *ret_reporter)
{
	const uint64_t hash = texts_hash(&all->reporter_slots, identity);
	uint32_t index = slots_find(&all->reporter_slots, hash, is_reporter,
				    all->reporters, identity);

	if (index == SLOT_NONE) {
		index = all->n_reporters;
		if (add_reporter(all, hash, identity, name))
			return -ENOMEM;
	}
	*ret_reporter = index;
	return 0;
}

uint32_t conversations_reporters(const struct conversations *all)
{
	return all->n_reporters;
}

const char *conversations_reporter_name(const struct conversations *all,
					uint32_t reporter)
{
	return all->reporters[reporter].name;
}

const char *conversations_workload(const struct conversations *all,
				   const struct edge_sum *sum, enum edge_end end)
{
	return sum->workloads[end] && !sum->is_workload_mixed[end] ?
		       texts_at(&all->talks.workloads, sum->workloads[end]) :
		       NULL;
}

/* ---- Reports --------------------------------------------------------------------------- */

static void count_flow(struct conversations *all,
		       const struct service_report *report)
{
	struct conversation_totals *totals = &all->totals;
	struct flow_span span = { totals->start_ms, totals->end_ms };

	totals->flows++;
	totals->sampled += report->sampling > 1;
	span_join(&span, span_of(report));
	totals->start_ms = span.start_ms;
	totals->end_ms = span.end_ms;
}

int conversations_add(struct conversations *all, uint32_t reporter,
		      const struct service_report *report)
{
	struct flow_face root;
	struct pair pair;
	uint8_t source;
	uint32_t talk;
	bool is_added = true;

	if (report->kind == REPORT_NONE)
		return 0;
	if (!nat_links_note(&all->links, report, &root))
		return -ENOMEM;
	if (report->kind == REPORT_MAPPING) {
		all->totals.mappings++;
		return 0;
	}
	pair = pair_of(&root, &source);
	talk = talks_get(&all->talks, &pair);
	if (talk == SLOT_NONE)
		return -ENOMEM;
	if (report->kind == REPORT_FLOW) {
		count_flow(all, report);
		is_added = talks_add_flow(&all->talks, talk, source, reporter,
					  report, &all->reporting[reporter]);
	} else {
		all->totals.sessions++;
		is_added = talks_add_session(&all->talks, talk, source,
					     reporter, report);
	}
	return is_added ? 0 : -ENOMEM;
}

/* ---- Which end is the service ---------------------------------------------------------- */

static bool is_server(const void *array, uint32_t index, const void *key)
{
	const struct server *list = array;

	return !memcmp(&list[index], key, sizeof(list[index]));
}

static struct server server_of(const struct pair *pair, uint8_t end)
{
	struct server server = { .port = pair->ports[end], .proto = pair->proto };

	memcpy(server.addr, pair->addrs[end], sizeof(server.addr));
	return server;
}

static bool accepts(struct conversations *all, const struct server *server)
{
	return slots_find(&all->server_slots,
			  slots_hash(&all->server_slots, server, sizeof(*server)),
			  is_server, all->servers, server) != SLOT_NONE;
}

/* Without memory, it is not noted. */
static void note_server(struct conversations *all, const struct talk *talk)
{
	const uint8_t end = talk->accepts[1] > talk->accepts[0];
	const struct server server = server_of(&talk->pair, end);

	if (talk->accepts[0] == talk->accepts[1] || !server.port ||
	    all->n_servers >= SERVERS_MAX || accepts(all, &server))
		return;
	if (array_reserve(&all->servers, all->n_servers, &all->servers_capacity,
			  sizeof(*all->servers), FIRST_CAPACITY) &&
	    slots_add(&all->server_slots,
		      slots_hash(&all->server_slots, &server, sizeof(server)),
		      all->n_servers))
		all->servers[all->n_servers++] = server;
}

/* The rules of groups, but by all reports of the conversation. */
static uint8_t find_service(struct conversations *all, const struct talk *talk,
			    uint8_t *ret_evidence)
{
	const struct pair *pair = &talk->pair;
	const struct server ends[2] = { server_of(pair, 0), server_of(pair, 1) };
	bool is_known[2];

	*ret_evidence = EVIDENCE_HANDSHAKE;
	if (talk->accepts[0] != talk->accepts[1])
		return talk->accepts[1] > talk->accepts[0];
	for (int end = 0; end < 2; end++)
		is_known[end] = accepts(all, &ends[end]);
	*ret_evidence = EVIDENCE_ACCEPTS;
	if (is_known[0] != is_known[1])
		return is_known[1];
	*ret_evidence = EVIDENCE_PORT;
	return server_by_port(pair->addrs[0], pair->ports[0], pair->addrs[1],
			      pair->ports[1]) == SERVER_DESTINATION;
}

/* ---- Edges ----------------------------------------------------------------------------- */

/* @return 0; -ENOMEM */
static int find_conversation(struct conversations *all, uint32_t talk)
{
	struct pair before;
	bool is_swapped;
	uint32_t root;

	switch (nat_links_find(&all->links, &all->talks.list[talk].pair,
			       &before, &is_swapped)) {
	case NAT_SHARED:
		all->totals.shared_packets +=
			talks_packets(&all->talks, &all->talks.list[talk]);
		all->talks.list[talk].is_merged = true;
		return 0;
	case NAT_FOUND:
		root = talks_get(&all->talks, &before);
		if (root == SLOT_NONE)
			return -ENOMEM;
		if (root != talk && !all->talks.list[root].is_merged)
			talks_merge(&all->talks, root, talk, is_swapped);
		return 0;
	default:
		return 0;
	}
}

static void add_edge(struct conversations *all, struct talk *talk,
		     struct edges *edges)
{
	struct edge edge;
	uint8_t evidence;
	const uint8_t service = find_service(all, talk, &evidence);

	talk_edge(&all->talks, talk, service, all->reporting, &edge);
	edge.sum.evidence = evidence;
	all->totals.repeated_packets += edge.sum.counts.repeated_packets;
	edges_add(edges, &edge.key, &edge.sum);
}

int conversations_take(struct conversations *all, struct edges *edges)
{
	struct talks *talks = &all->talks;
	const uint32_t n = talks->n;
	int r = 0;

	for (uint32_t i = 0; i < n; i++)
		r = find_conversation(all, i) ?: r;
	for (uint32_t i = 0; i < talks->n; i++)
		note_server(all, &talks->list[i]);
	for (uint32_t i = 0; i < talks->n; i++)
		if (!talks->list[i].is_merged)
			add_edge(all, &talks->list[i], edges);
	talks_clear(talks);
	if (all->links.n > LINKS_KEPT)
		nat_links_free(&all->links);
	return r;
}

void conversations_totals(const struct conversations *all,
			  struct conversation_totals *ret_totals)
{
	*ret_totals = all->totals;
}
