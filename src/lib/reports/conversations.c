/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "services.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conversation.h"
#include "base/util.h"

enum {
	SERVERS_MAX = 1 << 20, /* later ones are not noted */
	ORDERS_KEPT = 1 << 18, /* more are forgotten with the conversations */
	LINKS_KEPT = 1 << 16,  /* more are forgotten with the conversations */
	NATS_MAX = 8,	       /* NATs in a chain */
	PART_MIN = 4096, /* conversations whose edges are made at once, at least */
};

/* An end that has accepted a conversation. */
struct server {
	uint8_t addr[16];
	uint16_t port;
	uint8_t proto;
	uint8_t zero; /* all bytes are hashed */
};

/* A tuple that NAT gives a conversation, and the tuple that this had before. */
struct nat_link {
	struct pair behind, before;
	bool is_swapped; /* the first end of one is the second one of the other */
	bool is_shared; /* several conversations had the tuple, one after the other */
	bool is_counted; /* the host with the NAT reports flows, too */
};

/* Which end of a pair sent the first datagram. */
struct order {
	struct pair pair;
	uint8_t first; /* 1 + the end; 0: not known */
};

struct conversations {
	struct talks talks;
	struct slots links, reporters, servers, orders;
	uint32_t n_ordered; /* reporters of earlier calls: what they report for the first time began since then */
	struct netobs_services_stats totals;
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
	slots_free(&all->links);
	slots_free(&all->reporters);
	slots_free(&all->servers);
	slots_free(&all->orders);
	free(all);
}

/* ---- Reporters ------------------------------------------------------------------------- */

int conversations_reporter(struct conversations *all, const char *identity,
			   const char *name, uint32_t *ret_reporter)
{
	char key[REPORTER_MAX] = "";
	struct reporter *reporter;
	uint32_t index;

	snprintf(key, sizeof(key), "%s", identity);
	index = slots_get(&all->reporters, key, sizeof(key), sizeof(*reporter));
	if (index == SLOT_NONE)
		return -ENOMEM;
	reporter = slots_at(&all->reporters, index);
	all->totals.hosts = all->reporters.n;
	if (!*reporter->name)
		snprintf(reporter->name, sizeof(reporter->name), "%s", name);
	*ret_reporter = index;
	return 0;
}

const char *conversations_reporter_name(const struct conversations *all,
					uint32_t reporter)
{
	return ((const struct reporter *)slots_at(&all->reporters, reporter))->name;
}

const char *conversations_name(const struct conversations *all,
			       const struct edge_sum *sum, enum edge_end end,
			       enum name_kind kind)
{
	const struct end_names *names = &sum->names[end];

	return names->numbers[kind] && !names->is_mixed[kind] ?
		       talks_name(&all->talks, kind, names->numbers[kind]) :
		       NULL;
}

/* ---- NAT ------------------------------------------------------------------------------- */

/* @return false: no memory */
static bool note_link(struct slots *links, const struct nat_link *link)
{
	uint32_t index = slots_find(links, &link->behind);
	struct nat_link *known;

	if (!memcmp(&link->behind, &link->before, sizeof(link->behind)))
		return true;
	if (index == SLOT_NONE) {
		index = slots_get(links, &link->behind, sizeof(link->behind),
				  sizeof(*link));
		if (index != SLOT_NONE)
			memcpy(slots_at(links, index), link, sizeof(*link));
		return index != SLOT_NONE;
	}
	known = slots_at(links, index);
	known->is_counted |= link->is_counted;
	known->is_shared |= memcmp(&known->before, &link->before,
				   sizeof(known->before)) != 0;
	return true;
}

static uint64_t id_of(const struct service_report *report,
		      const struct flow_face *face)
{
	return conversation_id(&(struct conversation){
		.src = face->src,
		.dst = face->dst,
		.src_port = face->src_port,
		.dst_port = report->icmp ?: face->dst_port,
		.proto = face->proto,
	});
}

/* A mapping has its first addresses from before NAT; of flows, the id shows which ones are. */
static const struct flow_face *find_root(const struct service_report *report)
{
	if (!report->conversation_id)
		return &report->face;
	for (uint32_t i = 0; i < report->n_others; i++)
		if (id_of(report, &report->others[i]) == report->conversation_id)
			return &report->others[i];
	return &report->face;
}

/*
 * Find a report's tuple before all NAT of its host, which is its own if it has no other, and note its
 * other tuples. @return false: no memory
 */
static bool note_links(struct slots *links, const struct service_report *report,
		       struct flow_face *ret_root)
{
	const struct flow_face *root = find_root(report);
	struct nat_link link = { .is_counted = report->kind == REPORT_FLOW };
	uint8_t root_source, source;

	*ret_root = *root;
	if (!report->n_others ||
	    (!report->conversation_id && report->kind != REPORT_MAPPING))
		return true;
	link.before = pair_of(root, &root_source);
	link.behind = pair_of(&report->face, &source);
	link.is_swapped = source != root_source;
	if (!note_link(links, &link))
		return false;
	for (uint32_t i = 0; i < report->n_others; i++) {
		link.behind = pair_of(&report->others[i], &source);
		link.is_swapped = source != root_source;
		if (!note_link(links, &link))
			return false;
	}
	return true;
}

/*
 * Find the tuple before all NAT: *@ret_before is @pair itself if it is not behind one.
 *
 * @return false: several conversations had @pair, all of which the host with the NAT reports
 */
static bool find_before(const struct slots *links, const struct pair *pair,
			struct pair *ret_before, bool *ret_is_swapped)
{
	uint32_t index;

	*ret_before = *pair;
	*ret_is_swapped = false;
	for (int i = 0; i < NATS_MAX; i++) {
		const struct nat_link *link;

		index = slots_find(links, ret_before);
		if (index == SLOT_NONE)
			break;
		link = slots_at(links, index);
		if (link->is_shared) {
			*ret_before = *pair;
			return !link->is_counted;
		}
		*ret_before = link->before;
		*ret_is_swapped ^= link->is_swapped;
	}
	return true;
}

/* ---- Reports --------------------------------------------------------------------------- */

static void count_flow(struct conversations *all,
		       const struct service_report *report)
{
	struct netobs_services_stats *totals = &all->totals;
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
	if (!note_links(&all->links, report, &root))
		return -ENOMEM;
	if (report->kind == REPORT_MAPPING)
		return 0;
	pair = pair_of(&root, &source);
	talk = talks_get(&all->talks, &pair);
	if (talk == SLOT_NONE)
		return -ENOMEM;
	if (report->kind == REPORT_FLOW) {
		count_flow(all, report);
		is_added = talks_add_flow(&all->talks, talk, source, reporter,
					  report);
	} else {
		all->totals.sessions++;
		is_added = talks_add_session(&all->talks, talk, source,
					     reporter, report);
	}
	return is_added ? 0 : -ENOMEM;
}

/* ---- Which end is the service ---------------------------------------------------------- */

static struct server server_of(const struct pair *pair, uint8_t end)
{
	struct server server = { .port = pair->ports[end], .proto = pair->proto };

	memcpy(server.addr, pair->addrs[end], sizeof(server.addr));
	return server;
}

static bool accepts(const struct conversations *all, const struct server *server)
{
	return slots_find(&all->servers, server) != SLOT_NONE;
}

/* Note the end that accepted the conversation, unless there is no memory. */
static void note_server(struct conversations *all, const struct talk *talk)
{
	const struct server server =
		server_of(&talk->pair, talk->accepts[1] > talk->accepts[0]);

	if (talk->accepts[0] != talk->accepts[1] && server.port &&
	    all->servers.n < SERVERS_MAX)
		slots_get(&all->servers, &server, sizeof(server), sizeof(server));
}

/* @return whether a packet came before the other one, by times as <netobs/flow.h> has them */
static bool is_before(int64_t one_ns, int64_t other_ns)
{
	return one_ns + (one_ns & 1 ? TICK_NS : 0) < other_ns;
}

/* Find who began a conversation that was not reported before. @return as order.first */
static uint8_t find_first(const struct account *account)
{
	for (int end = 0; end < 2; end++)
		if (account->has_flows[end] &&
		    (!account->has_flows[!end] ||
		     is_before(account->sums[end].start_ns,
			       account->sums[!end].start_ns)))
			return (uint8_t)(end + 1);
	return 0;
}

/* The end that answers the first datagram with ports has accepted the conversation. */
static void note_order(struct conversations *all, const struct account *account)
{
	struct talk *talk = talk_at(&all->talks, account->talk);
	const struct pair *pair = &talk->pair;
	const struct server ends[2] = { server_of(pair, 0), server_of(pair, 1) };
	const uint32_t n = all->orders.n;
	struct order *order;
	uint32_t index;
	uint8_t server;

	if (pair->proto == IPPROTO_TCP || !pair->ports[0] || !pair->ports[1] ||
	    (account->has_flows[0] && !account->sums[0].start_ns) ||
	    (account->has_flows[1] && !account->sums[1].start_ns))
		return;
	index = slots_get(&all->orders, pair, sizeof(*pair), sizeof(*order));
	if (index == SLOT_NONE)
		return;
	order = slots_at(&all->orders, index);
	if (all->orders.n > n && account->reporter < all->n_ordered)
		order->first = find_first(account);
	server = order->first == 1;
	if (order->first && account->has_flows[server] && !talk->accepts[0] &&
	    !talk->accepts[1] && !accepts(all, &ends[0]) &&
	    !accepts(all, &ends[1])) {
		talk->accepts[server]++;
		talk->is_ordered = true;
	}
}

/* Where packets are sampled, the first ones may be missing. */
static void note_orders(struct conversations *all)
{
	const struct account *accounts = all->talks.accounts.items;

	for (uint32_t i = 0; i < all->talks.accounts.n && !all->totals.sampled;
	     i++)
		note_order(all, &accounts[i]);
	all->n_ordered = all->reporters.n;
	if (all->orders.n > ORDERS_KEPT) {
		slots_free(&all->orders);
		all->n_ordered = 0;
	}
}

/* The rules of groups, but by all reports of the conversation. @return the end */
static uint8_t find_service(const struct conversations *all,
			    const struct talk *talk, uint8_t *ret_evidence)
{
	const struct pair *pair = &talk->pair;
	const struct server ends[2] = { server_of(pair, 0), server_of(pair, 1) };
	bool is_known[2];

	*ret_evidence = talk->is_ordered ? EVIDENCE_ANSWERS : EVIDENCE_HANDSHAKE;
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
static int find_conversation(struct conversations *all, uint32_t index)
{
	struct talk *talk = talk_at(&all->talks, index);
	struct pair before;
	bool is_swapped;
	uint32_t root;

	if (!find_before(&all->links, &talk->pair, &before, &is_swapped)) {
		all->totals.shared_packets += talk->packets;
		talk->is_merged = true;
		return 0;
	}
	if (!memcmp(&before, &talk->pair, sizeof(before)))
		return 0;
	root = talks_get(&all->talks, &before);
	if (root == SLOT_NONE)
		return -ENOMEM;
	if (!talk_at(&all->talks, root)->is_merged)
		talks_merge(&all->talks, root, index, is_swapped);
	return 0;
}

static void note_edge(const struct conversations *all, struct talk *talk,
		      struct edges *edges)
{
	struct edge_key key;

	talk->service = find_service(all, talk, &talk->evidence);
	key = talk_edge_key(talk);
	talk->edge_hash = (uint32_t)slots_hash(&edges->all, &key, sizeof(key));
}

static void add_edge(struct conversations *all, const struct talk *talk,
		     const struct account *accounts, uint32_t n,
		     struct edges *edges)
{
	struct edge edge;

	talk_edge(talk, accounts, n, &edge);
	all->totals.repeated_packets += edge.sum.counts.repeated_packets;
	edges_add(edges, &edge.key, &edge.sum);
}

/* Add conversations to their edges: those whose edges are in one of @parts, by their hash. */
static void add_part(struct conversations *all, const struct account *accounts,
		     uint32_t part, uint32_t parts, struct edges *edges)
{
	const struct talks *talks = &all->talks;
	uint32_t at = 0, n;

	for (uint32_t i = 0; i < talks->all.n; i++, at += n) {
		const struct talk *talk = talk_at(talks, i);

		for (n = 0; at + n < talks->accounts.n &&
			    accounts[at + n].joined == i;)
			n++;
		if (!talk->is_merged && talk->edge_hash % parts == part)
			add_edge(all, talk, n ? accounts + at : NULL, n, edges);
	}
}

/* Each edge is complete before edges are evicted; there are few more than @edges has room for. */
static void add_edges(struct conversations *all, const struct account *accounts,
		      struct edges *edges)
{
	const uint32_t parts =
		all->talks.all.n / (uint32_t)max_u64(edges->max, PART_MIN) + 1;

	edges->is_fresh = !edges->all.n && !edges->n_others;
	for (uint32_t part = 0; part < parts; part++) {
		add_part(all, accounts, part, parts, edges);
		edges_trim(edges);
	}
}

int conversations_take(struct conversations *all, struct edges *edges)
{
	struct talks *talks = &all->talks;
	const uint32_t n_talks = talks->all.n;
	int r = 0;

	note_orders(all);
	for (uint32_t i = 0; i < n_talks; i++)
		r = find_conversation(all, i) ?: r;
	for (uint32_t i = 0; i < talks->all.n; i++)
		note_server(all, talk_at(talks, i));
	for (uint32_t i = 0; i < talks->all.n; i++)
		note_edge(all, talk_at(talks, i), edges);
	add_edges(all, talks_join(talks), edges);
	talks_clear(talks);
	if (all->links.n > LINKS_KEPT)
		slots_free(&all->links);
	return r;
}

struct netobs_services_stats *conversations_totals(struct conversations *all)
{
	return &all->totals;
}
