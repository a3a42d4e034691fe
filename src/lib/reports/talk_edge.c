/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "services.h"

#include "base/util.h"

#include <string.h>

enum { HEADERS_MIN = 40, HEADERS_MAX = 120 }; /* of IP and TCP */

/* The best reports so far. */
struct choice {
	struct account counted[2]; /* by the end: of the reporter with most packets from it */
	bool has_counted[2];
	struct part_counts to,
		back; /* those with most samples of round-trip times */
	struct part_counts responses; /* that with most answers */
	struct session_counts sessions;
	uint8_t sessions_end;
	uint32_t hosts;	 /* hosts that have reported flows */
	bool is_partial; /* one of these may not have reported all of it */
	struct flow_span span; /* of all reports, as the choice between equal ones is arbitrary */
};

static void add_account(const struct account *account, struct account *sum)
{
	for (int i = 0; i < 2; i++) {
		const int end = i ^ account->is_swapped;
		struct part *part = &sum->sums[end];

		sum->has_flows[end] |= account->has_flows[i];
		part->tcp_flags |= account->sums[i].tcp_flags;
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

/*
 * All data of a connection arrives if both ends' SYN and FIN are reported, and no RST. Reports with round-trip
 * times count what is sent again.
 */
static bool is_complete(const struct account *account)
{
	const struct part *a = &account->sums[0], *b = &account->sums[1];
	const uint16_t fin_syn = 0x3, rst = 0x4;

	return (a->tcp_flags & b->tcp_flags & fin_syn) == fin_syn &&
	       !((a->tcp_flags | b->tcp_flags) & rst) && !a->counts.uncertain &&
	       !b->counts.uncertain &&
	       a->counts.rtt_samples + b->counts.rtt_samples;
}

static void choose(struct choice *choice, const struct account *account,
		   uint8_t client)
{
	choose_counts(choice, account);
	choose_times(choice, account, client);
	choose_sessions(choice, account, client);
	if (account->has_flows[0] || account->has_flows[1]) {
		choice->hosts++;
		choice->is_partial |= !is_complete(account);
	}
}

/* Add up the accounts of the first reporter; each one's follow each other. @return how many they are */
static uint32_t sum_reporter(const struct account *accounts, uint32_t n,
			     struct account *ret_sum)
{
	uint32_t i;

	*ret_sum = (struct account){ .reporter = accounts->reporter };
	for (i = 0; i < n && accounts[i].reporter == ret_sum->reporter; i++)
		add_account(&accounts[i], ret_sum);
	return i;
}

static void choose_of_all(const struct account *accounts, uint32_t n,
			  uint8_t client, struct choice *choice)
{
	struct account sum;

	for (uint32_t i = 0; i < n;) {
		i += sum_reporter(accounts + i, n - i, &sum);
		choose(choice, &sum, client);
	}
}

/* ---- Lost data ------------------------------------------------------------------------- */

static bool is_nearer(const struct part_counts *a, const struct part_counts *b)
{
	return a->rtt_samples && b->rtt_samples &&
	       a->rtt_sum_ns / a->rtt_samples < b->rtt_sum_ns / b->rtt_samples;
}

/*
 * Data that passed @first again, and @other, which is nearer to the receiver, only once, was lost between them. All
 * else that @other lacks are headers and packets without data, unless it lacks reports.
 */
static bool find_lost(const struct part_counts *first,
		      const struct part_counts *other, uint64_t *ret_bytes)
{
	const uint64_t packets = first->packets - other->packets;
	const uint64_t bytes = first->bytes - other->bytes;
	const uint64_t lost =
		first->retransmitted_bytes - other->retransmitted_bytes;

	if (first->retransmitted_bytes < other->retransmitted_bytes ||
	    first->bytes < other->bytes || bytes < lost ||
	    (lost && !is_nearer(other, first)))
		return false;
	*ret_bytes = lost;
	return bytes - lost >= packets * HEADERS_MIN &&
	       bytes - lost <= packets * HEADERS_MAX;
}

static void add_loss(const struct choice *choice, const struct account *accounts,
		     uint32_t n, struct edge_counts *counts)
{
	uint64_t most[2] = { 0 }, lost = 0;
	struct account sum;

	if (choice->hosts < 2 || choice->is_partial)
		return;
	for (uint32_t i = 0; i < n;) {
		i += sum_reporter(accounts + i, n - i, &sum);
		for (int end = 0; end < 2 && sum.has_flows[end]; end++) {
			if (!find_lost(&choice->counted[end].sums[end].counts,
				       &sum.sums[end].counts, &lost))
				return;
			most[end] = max_u64(most[end], lost);
		}
	}
	counts->lost_bytes = most[0] + most[1];
	counts->loss_conversations = 1;
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
	add_loss(&choice, accounts, n, &sum->counts);
	sum->hosts = choice.hosts;
	sum->names[END_CLIENT] = talk->names[!service];
	sum->names[END_SERVICE] = talk->names[service];
}

/* ---- Sums ------------------------------------------------------------------------------ */

uint64_t edge_bytes(const struct edge_sum *sum)
{
	return sum->counts.bytes[TO_SERVICE] + sum->counts.bytes[TO_CLIENT];
}

uint64_t edge_packets(const struct edge_sum *sum)
{
	return sum->counts.packets[TO_SERVICE] + sum->counts.packets[TO_CLIENT];
}

static uint64_t mean(uint64_t sum, uint64_t n)
{
	return n ? sum / n : 0;
}

/* The sum of the times to both ends, from where both ways are seen. */
uint64_t edge_rtt_ns(const struct edge_counts *counts)
{
	return mean(counts->rtt_sum_ns[TO_SERVICE],
		    counts->rtt_samples[TO_SERVICE]) +
	       mean(counts->rtt_sum_ns[TO_CLIENT],
		    counts->rtt_samples[TO_CLIENT]);
}

uint64_t edge_response_ns(const struct edge_counts *counts)
{
	return mean(counts->response_sum_ns, counts->responses);
}

static void add_span(struct edge_sum *sum, const struct edge_sum *more)
{
	if (!more->end_ms)
		return;
	if (!sum->end_ms || more->start_ms < sum->start_ms)
		sum->start_ms = more->start_ms;
	sum->end_ms = max_i64(sum->end_ms, more->end_ms);
}

/* If two hosts report it, name the one with more packets. */
static void add_reporters(struct edge_sum *sum, const struct edge_sum *more)
{
	for (int way = 0; way < EDGE_WAYS; way++) {
		if (sum->counted_by[way] == more->counted_by[way]) {
			sum->counted_packets[way] += more->counted_packets[way];
		} else if (more->counted_packets[way] >
			   sum->counted_packets[way]) {
			sum->counted_by[way] = more->counted_by[way];
			sum->counted_packets[way] = more->counted_packets[way];
		}
	}
	if (more->hosts > sum->hosts)
		sum->hosts = more->hosts;
}

void names_join(struct end_names *names, const struct end_names *more)
{
	for (int kind = 0; kind < NAME_KINDS; kind++) {
		uint32_t *number = &names->numbers[kind];

		names->is_mixed[kind] |= more->is_mixed[kind] ||
					 (*number && more->numbers[kind] &&
					  *number != more->numbers[kind]);
		*number = *number ?: more->numbers[kind];
	}
}

void edge_sum_add(struct edge_sum *sum, const struct edge_sum *more)
{
	counters_add(&sum->counts, &more->counts, sizeof(sum->counts));
	add_span(sum, more);
	add_reporters(sum, more);
	for (int end = 0; end < EDGE_ENDS; end++)
		names_join(&sum->names[end], &more->names[end]);
	if (more->evidence > sum->evidence)
		sum->evidence = more->evidence;
}

/* ---- Edges ----------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
	const struct edge *one = a, *other = b;
	const uint64_t bytes = edge_bytes(&one->sum),
		       others = edge_bytes(&other->sum);

	if (bytes != others)
		return bytes < others ? 1 : -1;
	return memcmp(&one->key, &other->key, sizeof(one->key));
}

static void add_to_others(struct edges *edges, const struct edge_sum *sum)
{
	edge_sum_add(&edges->others, sum);
	edges->n_others++;
}

void edges_add(struct edges *edges, const struct edge_key *key,
	       const struct edge_sum *sum)
{
	uint32_t index = slots_find(&edges->all, key);

	if (index != SLOT_NONE) {
		edge_sum_add(&edge_at(edges, index)->sum, sum);
		return;
	}
	index = slots_get(&edges->all, key, sizeof(*key), sizeof(struct edge));
	if (index == SLOT_NONE) {
		edges->evicted_bytes += edge_bytes(sum);
		edges->is_fresh = false;
		add_to_others(edges, sum);
		return;
	}
	edge_at(edges, index)->sum = *sum;
	edge_at(edges, index)->missing_bytes =
		edges->is_fresh ? 0 : edges->evicted_bytes;
}

void edges_trim(struct edges *edges)
{
	if (edges->all.n <= edges->max)
		return;
	edges_sort(edges);
	edges->evicted_bytes += edge_bytes(&edge_at(edges, edges->max)->sum);
	for (uint32_t i = edges->max; i < edges->all.n; i++)
		add_to_others(edges, &edge_at(edges, i)->sum);
	edges->all.n = edges->max;
	slots_rehash(&edges->all);
}

void edges_sort(struct edges *edges)
{
	if (!edges->all.n)
		return;
	qsort(edges->all.items, edges->all.n, sizeof(struct edge), by_bytes);
	slots_rehash(&edges->all);
}

void edges_clear(struct edges *edges)
{
	slots_clear(&edges->all);
	edges->others = (struct edge_sum){ 0 };
	edges->n_others = edges->evicted_bytes = 0;
}

void edges_free(struct edges *edges)
{
	slots_free(&edges->all);
	*edges = (struct edges){ .max = edges->max };
}
