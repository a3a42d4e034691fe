/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "talk_edge.h"

#include <string.h>

#include "base/util.h"

struct choice {
	const struct talks *talks;
	const struct talk *talk;
	const bool *is_merged;
};

/* @number: the index of a part, plus 1; 0: there is none */
static const struct part *part_at(const struct choice *choice, uint32_t number)
{
	return number ? &choice->talks->parts[number - 1] : NULL;
}

#define FOR_EACH_PART(choice, part)                                     \
	for ((part) = part_at((choice), (choice)->talk->parts); (part); \
	     (part) = part_at((choice), (part)->next))

static void part_add(struct part *sum, const struct part *more)
{
	sum->start_ms = sum->packets ? min_i64(sum->start_ms, more->start_ms) :
				       more->start_ms;
	sum->end_ms = max_i64(sum->end_ms, more->end_ms);
	sum->packets += more->packets;
	sum->bytes += more->bytes;
	sum->retransmits += more->retransmits;
	sum->rtt_sum_ns += more->rtt_sum_ns;
	sum->rtt_samples += more->rtt_samples;
	sum->response_sum_ns += more->response_sum_ns;
	sum->responses += more->responses;
}

/* ---- Several interfaces of a host ------------------------------------------------------ */

/*
 * A host that reports each interface by itself reports a flow at one place in each record, and at
 * several at the same time. One that counts a flow once names all places, or changes from one
 * to another as its routes do.
 */
static bool is_beside(const struct part *a, const struct part *b)
{
	return a->point && b->point && a->point != b->point &&
	       a->start_ms < b->end_ms && b->start_ms < a->end_ms;
}

static bool reports_interfaces(const struct choice *choice, uint32_t reporter,
			       uint8_t source)
{
	const struct part *one, *other;

	if (choice->is_merged[reporter])
		return false;
	FOR_EACH_PART(choice, one)
	{
		if (one->reporter != reporter || one->source != source)
			continue;
		FOR_EACH_PART(choice, other)
		if (other->reporter == reporter && other->source == source &&
		    is_beside(one, other))
			return true;
	}
	return false;
}

/* @return all that a reporter has seen of a direction */
static struct part sum_of(const struct choice *choice, uint32_t reporter,
			  uint8_t source)
{
	const bool is_most = reports_interfaces(choice, reporter, source);
	struct part sum = { .reporter = reporter, .source = source };
	const struct part *part;

	FOR_EACH_PART(choice, part)
	{
		if (part->reporter != reporter || part->source != source)
			continue;
		if (!is_most)
			part_add(&sum, part);
		else if (part->packets > sum.packets)
			sum = *part;
	}
	return sum;
}

/* ---- Several hosts --------------------------------------------------------------------- */

static bool is_better(const struct part *a, const struct part *b)
{
	if (a->packets != b->packets)
		return a->packets > b->packets;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes;
	return a->reporter < b->reporter;
}

static struct part choose(const struct choice *choice, uint8_t source)
{
	struct part best = { .reporter = UINT32_MAX };
	const struct part *part;

	FOR_EACH_PART(choice, part)
	{
		struct part sum;

		if (part->source != source)
			continue;
		sum = sum_of(choice, part->reporter, source);
		if (is_better(&sum, &best))
			best = sum;
	}
	return best;
}

static uint32_t count_hosts(const struct choice *choice)
{
	const struct part *part, *before;
	uint32_t n = 0;

	FOR_EACH_PART(choice, part)
	{
		bool is_first = true;

		FOR_EACH_PART(choice, before)
		{
			if (before == part)
				break;
			is_first &= before->reporter != part->reporter;
		}
		n += is_first;
	}
	return n;
}

static void add_way(const struct choice *choice, uint8_t source,
		    enum edge_way way, struct edge_sum *sum)
{
	const struct part best = choose(choice, source);
	struct edge_counts *counts = &sum->counts;

	if (best.reporter == UINT32_MAX)
		return;
	counts->packets[way] = best.packets;
	counts->bytes[way] = best.bytes;
	counts->retransmits += best.retransmits;
	sum->counted_by[way] = best.reporter + 1;
	sum->counted_packets[way] = best.packets;
	if (!sum->end_ms || best.start_ms < sum->start_ms)
		sum->start_ms = best.start_ms;
	sum->end_ms = max_i64(sum->end_ms, best.end_ms);
}

/*
 * Times are of one host, from it to either end: those of two would count a part of the way twice. Of
 * several, it is the one with most samples.
 */
static void add_times(const struct choice *choice, uint8_t client,
		      struct edge_counts *counts)
{
	uint64_t most = 0, most_responses = 0;
	const struct part *part;

	FOR_EACH_PART(choice, part)
	{
		const struct part to = sum_of(choice, part->reporter, client),
				  back = sum_of(choice, part->reporter, !client);

		if (to.rtt_samples + back.rtt_samples > most) {
			most = to.rtt_samples + back.rtt_samples;
			counts->rtt_sum_ns[TO_SERVICE] = to.rtt_sum_ns;
			counts->rtt_samples[TO_SERVICE] = to.rtt_samples;
			counts->rtt_sum_ns[TO_CLIENT] = back.rtt_sum_ns;
			counts->rtt_samples[TO_CLIENT] = back.rtt_samples;
		}
		if (to.responses > most_responses) {
			most_responses = to.responses;
			counts->response_sum_ns = to.response_sum_ns;
			counts->responses = to.responses;
		}
	}
}

/* Sockets of both ends report the same connections: that with more of them, or the client's. */
static void add_sessions(const struct choice *choice, uint8_t client,
			 struct edge_counts *counts)
{
	const struct session_part *part, *best = NULL;

	for (uint32_t i = choice->talk->session_parts; i; i = part->next) {
		part = &choice->talks->sessions[i - 1];
		if (!best || part->connections > best->connections ||
		    (part->connections == best->connections &&
		     part->end == client && best->end != client))
			best = part;
	}
	if (!best)
		return;
	counts->connections = best->connections;
	counts->refused = best->refused;
	counts->resets = best->resets;
	counts->timeouts = best->timeouts;
	counts->failed = best->failed;
}

/* ---- The edge -------------------------------------------------------------------------- */

uint64_t talk_packets(const struct talks *talks, const struct talk *talk)
{
	const struct choice choice = { .talks = talks, .talk = talk };
	const struct part *part;
	uint64_t packets = 0;

	FOR_EACH_PART(&choice, part)
	packets += part->packets;
	return packets;
}

static void name_process(const struct talk *talk, uint8_t end, int of,
			 struct edge_sum *sum)
{
	memcpy(sum->processes[of], talk->processes[end], EDGE_NAME_MAX);
	sum->has_process[of] = *talk->processes[end];
	sum->is_process_mixed[of] = talk->is_mixed[end];
}

void talk_edge(const struct talks *talks, const struct talk *talk,
	       uint8_t service, const bool *is_merged, struct edge *ret_edge)
{
	const struct choice choice = { talks, talk, is_merged };
	const struct pair *pair = &talk->pair;
	struct edge_sum *sum = &ret_edge->sum;

	*ret_edge = (struct edge){ .key = { .port = pair->ports[service],
					    .proto = pair->proto } };
	memcpy(ret_edge->key.client, pair->addrs[!service], 16);
	memcpy(ret_edge->key.service, pair->addrs[service], 16);
	sum->counts.conversations = 1;
	add_way(&choice, !service, TO_SERVICE, sum);
	add_way(&choice, service, TO_CLIENT, sum);
	sum->counts.repeated_packets =
		talk_packets(talks, talk) - edge_packets(sum);
	add_times(&choice, !service, &sum->counts);
	add_sessions(&choice, !service, &sum->counts);
	sum->hosts = count_hosts(&choice);
	name_process(talk, !service, 0, sum);
	name_process(talk, service, 1, sum);
}
