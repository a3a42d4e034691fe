/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "talks.h"

#include <string.h>

#include "base/util.h"

/* The best reports so far. */
struct choice {
	struct account counted[2]; /* by the end: of the reporter with most packets from it */
	bool has_counted[2];
	struct part_counts to,
		back; /* those with most samples of round-trip times */
	struct part_counts responses; /* that with most answers */
	struct session_counts sessions;
	uint8_t sessions_end;
	uint32_t hosts; /* hosts that have reported flows */
	struct flow_span span; /* of all reports, as the choice between equal ones is arbitrary */
};

static void add_account(const struct account *account, struct account *sum)
{
	for (int i = 0; i < 2; i++) {
		const int end = i ^ account->is_swapped;
		struct part *part = &sum->sums[end];

		sum->has_flows[end] |= account->has_flows[i];
		span_join(&part->span, account->sums[i].span);
		counters_add(&part->counts, &account->sums[i].counts,
			     sizeof(part->counts));
		counters_add(&sum->sessions[end], &account->sessions[i],
			     sizeof(sum->sessions[end]));
	}
}

/* ---- Several reporters ----------------------------------------------------------------- */

/* Reporters come in the order of their numbers: of equal sums, the first is taken. */
static bool is_better(const struct part *a, const struct part *b)
{
	return a->counts.packets != b->counts.packets ?
		       a->counts.packets > b->counts.packets :
		       a->counts.bytes > b->counts.bytes;
}

static void choose_counts(struct choice *choice, const struct account *account)
{
	for (int end = 0; end < 2; end++) {
		span_join(&choice->span, account->sums[end].span);
		if (!account->has_flows[end] ||
		    (choice->has_counted[end] &&
		     !is_better(&account->sums[end],
				&choice->counted[end].sums[end])))
			continue;
		choice->has_counted[end] = true;
		choice->counted[end] = *account;
	}
}

/*
 * Take the times to both ends from one host: times of two hosts would count a part of the way
 * twice. Of several hosts, the one with most samples is taken. Of hosts with equally many answers,
 * the one that waits longest is taken: it is the nearest to the client.
 */
static void choose_times(struct choice *choice, const struct account *account,
			 uint8_t client)
{
	const struct part_counts *to = &account->sums[client].counts,
				 *back = &account->sums[!client].counts;
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
static void choose_sessions(struct choice *choice,
			    const struct account *account, uint8_t client)
{
	for (uint8_t end = 0; end < 2; end++) {
		const uint64_t most = choice->sessions.connections;
		const uint64_t n = account->sessions[end].connections;

		if (n < most || !n ||
		    (n == most &&
		     (end != client || choice->sessions_end == client)))
			continue;
		choice->sessions = account->sessions[end];
		choice->sessions_end = end;
	}
}

static void choose(struct choice *choice, const struct account *account,
		   uint8_t client)
{
	choose_counts(choice, account);
	choose_times(choice, account, client);
	choose_sessions(choice, account, client);
	choice->hosts += account->has_flows[0] || account->has_flows[1];
}

/* Each reporter's accounts follow each other. */
static void choose_of_all(const struct account *accounts, uint32_t n,
			  uint8_t client, struct choice *choice)
{
	for (uint32_t i = 0; i < n;) {
		struct account sum = { .reporter = accounts[i].reporter };

		for (; i < n && accounts[i].reporter == sum.reporter; i++)
			add_account(&accounts[i], &sum);
		choose(choice, &sum, client);
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

struct edge_key talk_edge_key(const struct talk *talk)
{
	const struct pair *pair = &talk->pair;
	struct edge_key key = { .port = pair->ports[talk->service],
				.proto = pair->proto };

	memcpy(key.client, pair->addrs[!talk->service], 16);
	memcpy(key.service, pair->addrs[talk->service], 16);
	return key;
}

void talk_edge(const struct talk *talk, const struct account *accounts,
	       uint32_t n, struct edge *ret_edge)
{
	const uint8_t service = talk->service;
	struct edge_sum *sum = &ret_edge->sum;
	struct choice choice = { 0 };

	*ret_edge = (struct edge){ .key = talk_edge_key(talk) };
	sum->evidence = talk->evidence;
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
