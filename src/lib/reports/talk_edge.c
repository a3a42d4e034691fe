/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "talks.h"

#include <string.h>

#include "base/util.h"

/* All reports of one reporter on a talk, by the end that sends, or has the sockets. */
struct view {
	uint32_t reporter;
	struct part sums[2];
	bool has_flows[2];
	struct session_counts sessions[2];
};

/* The best reports so far. */
struct choice {
	struct view counted[2]; /* by the end: of the reporter with most packets from it */
	bool has_counted[2];
	struct part_counts to,
		back; /* those with most samples of round-trip times */
	struct part_counts responses; /* that with most answers */
	struct session_counts sessions;
	uint8_t sessions_end;
	uint32_t hosts; /* hosts that have reported flows */
	struct flow_span span; /* of all reports, as the choice between equal ones is arbitrary */
};

static void add_account(const struct account *account, struct view *view)
{
	const uint32_t end = account->joined_end;

	view->has_flows[end] |= account->has_flows;
	span_join(&view->sums[end].span, account->sum.span);
	counters_add(&view->sums[end].counts, &account->sum.counts,
		     sizeof(account->sum.counts));
	counters_add(&view->sessions[end], &account->sessions,
		     sizeof(view->sessions[0]));
}

/* ---- Several reporters ----------------------------------------------------------------- */

/* Reporters come in the order of their numbers: of equal sums, the first is taken. */
static bool is_better(const struct part *a, const struct part *b)
{
	return a->counts.packets != b->counts.packets ?
		       a->counts.packets > b->counts.packets :
		       a->counts.bytes > b->counts.bytes;
}

static void choose_counts(struct choice *choice, const struct view *view)
{
	for (int end = 0; end < 2; end++) {
		span_join(&choice->span, view->sums[end].span);
		if (!view->has_flows[end] ||
		    (choice->has_counted[end] &&
		     !is_better(&view->sums[end],
				&choice->counted[end].sums[end])))
			continue;
		choice->has_counted[end] = true;
		choice->counted[end] = *view;
	}
}

/*
 * Take the times to both ends from one host: times of two hosts would count a part of the way
 * twice. Of several hosts, the one with most samples is taken. Of hosts with equally many answers,
 * the one that waits longest is taken: it is the nearest to the client.
 */
static void choose_times(struct choice *choice, const struct view *view,
			 uint8_t client)
{
	const struct part_counts *to = &view->sums[client].counts,
				 *back = &view->sums[!client].counts;
	struct part_counts *responses = &choice->responses;

	if (to->rtt_samples + back->rtt_samples >
	    choice->to.rtt_samples + choice->back.rtt_samples) {
		choice->to = *to;
		choice->back = *back;
	}
	if (to->responses > responses->responses ||
	    (to->responses == responses->responses &&
	     to->response_sum_ns > responses->response_sum_ns))
		*responses = *to;
}

/* Sockets of both ends report the same connections: that with more of them, or the client's. */
static void choose_sessions(struct choice *choice, const struct view *view,
			    uint8_t client)
{
	for (uint8_t end = 0; end < 2; end++) {
		const uint64_t most = choice->sessions.connections;
		const uint64_t n = view->sessions[end].connections;

		if (n < most || !n ||
		    (n == most &&
		     (end != client || choice->sessions_end == client)))
			continue;
		choice->sessions = view->sessions[end];
		choice->sessions_end = end;
	}
}

static void choose(struct choice *choice, const struct view *view, uint8_t client)
{
	choose_counts(choice, view);
	choose_times(choice, view, client);
	choose_sessions(choice, view, client);
	choice->hosts += view->has_flows[0] || view->has_flows[1];
}

/* Each reporter's accounts follow each other. */
static void choose_of_all(const struct account *accounts, uint32_t n,
			  uint8_t client, struct choice *choice)
{
	for (uint32_t i = 0; i < n;) {
		struct view view = { .reporter = accounts[i].key.reporter };

		for (; i < n && accounts[i].key.reporter == view.reporter; i++)
			add_account(&accounts[i], &view);
		choose(choice, &view, client);
	}
}

/* ---- The edge -------------------------------------------------------------------------- */

static void add_way(const struct choice *choice, uint8_t source,
		    enum edge_way way, struct edge_sum *sum)
{
	const struct part_counts *best =
		&choice->counted[source].sums[source].counts;

	if (!choice->has_counted[source])
		return;
	sum->counts.packets[way] = best->packets;
	sum->counts.bytes[way] = best->bytes;
	sum->counts.retransmits += best->retransmits;
	sum->counted_by[way] = choice->counted[source].reporter + 1;
	sum->counted_packets[way] = best->packets;
}

static void add_times(const struct choice *choice, struct edge_counts *counts)
{
	counts->rtt_sum_ns[TO_SERVICE] = choice->to.rtt_sum_ns;
	counts->rtt_samples[TO_SERVICE] = choice->to.rtt_samples;
	counts->rtt_sum_ns[TO_CLIENT] = choice->back.rtt_sum_ns;
	counts->rtt_samples[TO_CLIENT] = choice->back.rtt_samples;
	counts->response_sum_ns = choice->responses.response_sum_ns;
	counts->responses = choice->responses.responses;
}

static void add_sessions(const struct session_counts *sessions,
			 struct edge_counts *counts)
{
	counts->connections = sessions->connections;
	counts->refused = sessions->refused;
	counts->resets = sessions->resets;
	counts->timeouts = sessions->timeouts;
	counts->failed = sessions->failed;
}

void talk_edge(const struct talk *talk, const struct account *accounts,
	       uint32_t n, uint8_t service, struct edge *ret_edge)
{
	const struct pair *pair = &talk->pair;
	struct edge_sum *sum = &ret_edge->sum;
	struct choice choice = { 0 };

	*ret_edge = (struct edge){ .key = { .port = pair->ports[service],
					    .proto = pair->proto } };
	memcpy(ret_edge->key.client, pair->addrs[!service], 16);
	memcpy(ret_edge->key.service, pair->addrs[service], 16);
	choose_of_all(accounts, n, !service, &choice);
	sum->counts.conversations = 1;
	sum->start_ms = choice.span.start_ms;
	sum->end_ms = choice.span.end_ms;
	add_way(&choice, !service, TO_SERVICE, sum);
	add_way(&choice, service, TO_CLIENT, sum);
	sum->counts.repeated_packets = talk->packets - edge_packets(sum);
	add_times(&choice, &sum->counts);
	add_sessions(&choice.sessions, &sum->counts);
	sum->hosts = choice.hosts;
	sum->names[END_CLIENT] = talk->names[!service];
	sum->names[END_SERVICE] = talk->names[service];
}
