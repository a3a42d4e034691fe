/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "talks.h"

#include <netinet/in.h>
#include <string.h>

#include <netobs/session.h>

#include "base/server_end.h"
#include "base/util.h"

enum { FIRST_CAPACITY = 256 };

struct pair pair_of(const struct flow_face *face, uint8_t *ret_source)
{
	const int order = memcmp(face->src, face->dst, sizeof(face->src));
	const uint8_t source = order > 0 ||
			       (!order && face->src_port > face->dst_port);
	struct pair pair = { .proto = face->proto };

	memcpy(pair.addrs[source], face->src, sizeof(face->src));
	memcpy(pair.addrs[!source], face->dst, sizeof(face->dst));
	pair.ports[source] = face->src_port;
	pair.ports[!source] = face->dst_port;
	*ret_source = source;
	return pair;
}

static bool has_pair(const void *array, uint32_t index, const void *key)
{
	const struct talk *list = array;

	return !memcmp(&list[index].pair, key, sizeof(list[index].pair));
}

uint32_t talks_get(struct talks *talks, const struct pair *pair)
{
	const uint64_t hash = slots_hash(&talks->slots, pair, sizeof(*pair));
	const uint32_t index =
		slots_find(&talks->slots, hash, has_pair, talks->list, pair);

	if (index != SLOT_NONE)
		return index;
	if (!array_reserve(&talks->list, talks->n, &talks->capacity,
			   sizeof(*talks->list), FIRST_CAPACITY) ||
	    !slots_add(&talks->slots, hash, talks->n))
		return SLOT_NONE;
	talks->list[talks->n] = (struct talk){ .pair = *pair };
	return talks->n++;
}

/* ---- Reports --------------------------------------------------------------------------- */

static void count_accept(struct talk *talk, uint8_t end)
{
	if (talk->accepts[end] < UINT16_MAX)
		talk->accepts[end]++;
}

static void note_process(struct talk *talk, uint8_t end, const char *name)
{
	if (!*name)
		return;
	if (*talk->processes[end] && strcmp(talk->processes[end], name))
		talk->is_mixed[end] = true;
	memcpy(talk->processes[end], name, EDGE_NAME_MAX);
}

/* A SYN without ACK shows what it shows also where flags of single packets are not known. */
static enum server_end find_server(const struct service_report *report)
{
	const struct flow_face *face = &report->face;
	const uint16_t ack = 0x10;

	if (face->proto == IPPROTO_TCP)
		return report->has_combined || !(report->tcp_flags & ack) ?
			       server_by_flags(report->tcp_flags,
					       report->tcp_combined) :
			       SERVER_UNKNOWN;
	if (is_multicast(face->dst))
		return SERVER_DESTINATION;
	if (face->proto == IPPROTO_ICMP || face->proto == IPPROTO_ICMPV6)
		return server_by_type(face->proto, report->icmp >> 8);
	return SERVER_UNKNOWN;
}

static struct part *find_part(const struct talks *talks,
			      const struct talk *talk, const struct part *like)
{
	struct part *part;

	for (uint32_t i = talk->parts; i; i = part->next) {
		part = &talks->parts[i - 1];
		if (part->reporter == like->reporter &&
		    part->source == like->source && part->point == like->point)
			return part;
	}
	return NULL;
}

static struct part *add_part(struct talks *talks, struct talk *talk,
			     const struct part *like)
{
	struct part *part;

	if (!array_reserve(&talks->parts, talks->n_parts, &talks->parts_capacity,
			   sizeof(*talks->parts), FIRST_CAPACITY))
		return NULL;
	part = &talks->parts[talks->n_parts++];
	*part = *like;
	part->next = talk->parts;
	talk->parts = talks->n_parts;
	return part;
}

bool talks_add_flow(struct talks *talks, uint32_t index, uint8_t source,
		    uint32_t reporter, const struct service_report *report)
{
	struct talk *talk = &talks->list[index];
	const struct part like = {
		.reporter = reporter,
		.source = source,
		.point = report->n_points == 1 ? report->point : 0,
		.start_ms = report->start_ms,
	};
	const enum server_end server = find_server(report);
	struct part *part = find_part(talks, talk, &like) ?:
				    add_part(talks, talk, &like);

	if (!part)
		return false;
	part->start_ms = min_i64(part->start_ms, report->start_ms);
	part->end_ms = max_i64(part->end_ms, report->end_ms);
	part->packets += report->packets;
	part->bytes += report->bytes;
	part->retransmits += report->retransmits;
	part->rtt_sum_ns += report->rtt_ns * report->rtt_samples;
	part->rtt_samples += report->rtt_samples;
	part->response_sum_ns += report->response_ns * report->responses;
	part->responses += report->responses;
	if (server)
		count_accept(talk, server == SERVER_SOURCE ? source : !source);
	note_process(talk, source, report->processes[0]);
	note_process(talk, !source, report->processes[1]);
	return true;
}

static struct session_part *get_session_part(struct talks *talks,
					     struct talk *talk, uint8_t end,
					     uint32_t reporter)
{
	struct session_part *part;

	for (uint32_t i = talk->session_parts; i; i = part->next) {
		part = &talks->sessions[i - 1];
		if (part->reporter == reporter && part->end == end)
			return part;
	}
	if (!array_reserve(&talks->sessions, talks->n_sessions,
			   &talks->sessions_capacity, sizeof(*talks->sessions),
			   FIRST_CAPACITY))
		return NULL;
	part = &talks->sessions[talks->n_sessions++];
	*part = (struct session_part){ .next = talk->session_parts,
				       .reporter = reporter,
				       .end = end };
	talk->session_parts = talks->n_sessions;
	return part;
}

/* A RST is a reset for both ends, whichever sends it. */
bool talks_add_session(struct talks *talks, uint32_t index, uint8_t source,
		       uint32_t reporter, const struct service_report *report)
{
	struct talk *talk = &talks->list[index];
	struct session_part *part;

	if (report->opened == NETOBS_SESSION_PASSIVE)
		count_accept(talk, source);
	else if (report->opened == NETOBS_SESSION_ACTIVE)
		count_accept(talk, !source);
	note_process(talk, source, report->processes[0]);
	if (report->ended == NETOBS_SESSION_OPEN)
		return true;
	part = get_session_part(talks, talk, source, reporter);
	if (!part)
		return false;
	part->connections++;
	part->refused += report->ended == NETOBS_SESSION_REFUSED;
	part->resets += report->ended == NETOBS_SESSION_RESET ||
			report->ended == NETOBS_SESSION_ABORTED;
	part->timeouts += report->ended == NETOBS_SESSION_TIMEOUT;
	part->failed += report->ended == NETOBS_SESSION_FAILED;
	return true;
}

/* ---- All of them ----------------------------------------------------------------------- */

/* @return the last one of the list that begins with @first */
static uint32_t *end_of_parts(struct talks *talks, uint32_t *first,
			      bool is_swapped)
{
	while (*first) {
		struct part *part = &talks->parts[*first - 1];

		part->source ^= is_swapped;
		first = &part->next;
	}
	return first;
}

static uint32_t *end_of_sessions(struct talks *talks, uint32_t *first,
				 bool is_swapped)
{
	while (*first) {
		struct session_part *part = &talks->sessions[*first - 1];

		part->end ^= is_swapped;
		first = &part->next;
	}
	return first;
}

void talks_merge(struct talks *talks, uint32_t to, uint32_t from, bool is_swapped)
{
	struct talk *talk = &talks->list[to], *other = &talks->list[from];

	*end_of_parts(talks, &other->parts, is_swapped) = talk->parts;
	talk->parts = other->parts;
	*end_of_sessions(talks, &other->session_parts, is_swapped) =
		talk->session_parts;
	talk->session_parts = other->session_parts;
	for (uint8_t end = 0; end < 2; end++) {
		const uint8_t theirs = end ^ is_swapped;

		talk->accepts[end] = (uint16_t)min_u64(
			UINT16_MAX,
			(uint64_t)talk->accepts[end] + other->accepts[theirs]);
		note_process(talk, end, other->processes[theirs]);
		talk->is_mixed[end] |= other->is_mixed[theirs];
	}
	other->parts = other->session_parts = 0;
	other->is_merged = true;
}

void talks_clear(struct talks *talks)
{
	slots_clear(&talks->slots);
	talks->n = talks->n_parts = talks->n_sessions = 0;
}

void talks_free(struct talks *talks)
{
	free(talks->list);
	free(talks->parts);
	free(talks->sessions);
	slots_free(&talks->slots);
	*talks = (struct talks){ 0 };
}
