/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "talks.h"

#include <netinet/in.h>
#include <string.h>

#include <netobs/session.h>

#include "base/conversation.h"
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

static void note_workload(struct talk *talk, uint8_t end, uint32_t workload)
{
	talk->is_workload_mixed[end] |= workload && talk->workloads[end] &&
					workload != talk->workloads[end];
	talk->workloads[end] = workload ?: talk->workloads[end];
}

/* Note the names that a report has of its source, and of its destination. */
static void note_names(struct talks *talks, struct talk *talk, uint8_t source,
		       const struct service_report *report)
{
	for (uint8_t i = 0; i < 2; i++) {
		const uint8_t end = i ? !source : source;

		note_process(talk, end, report->processes[i]);
		note_workload(talk, end,
			      texts_number(&talks->workloads,
					   report->workloads[i]));
	}
}

/* A SYN without ACK is evidence also if flags of single packets are unknown. */
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

void span_join(struct flow_span *span, struct flow_span more)
{
	if (!more.start_ms)
		return;
	if (!span->start_ms || more.start_ms < span->start_ms)
		span->start_ms = more.start_ms;
	span->end_ms = max_i64(span->end_ms, more.end_ms);
}

struct flow_span span_of(const struct service_report *report)
{
	const struct flow_span span = { report->start_ms, report->end_ms };

	return span.start_ms > 0 && span.start_ms <= span.end_ms ?
		       span :
		       (struct flow_span){ 0 };
}

/* ---- Accounts -------------------------------------------------------------------------- */

/* Key of an account. */
struct account_key {
	uint32_t talk, reporter;
	uint64_t end;
};

static bool is_account(const void *array, uint32_t index, const void *key)
{
	const struct account *account = &((const struct account *)array)[index];
	const struct account_key *wanted = key;

	return account->talk == wanted->talk &&
	       account->reporter == wanted->reporter &&
	       account->end == wanted->end;
}

/* @return NULL: no memory */
static struct account *get_account(struct talks *talks, uint32_t talk,
				   uint32_t reporter, uint8_t end)
{
	const struct account_key key = { talk, reporter, end };
	const uint64_t hash =
		slots_hash(&talks->account_slots, &key, sizeof(key));
	const uint32_t index = slots_find(&talks->account_slots, hash,
					  is_account, talks->accounts, &key);
	struct account *account;

	if (index != SLOT_NONE)
		return &talks->accounts[index];
	if (!array_reserve(&talks->accounts, talks->n_accounts,
			   &talks->accounts_capacity, sizeof(*talks->accounts),
			   FIRST_CAPACITY) ||
	    !slots_add(&talks->account_slots, hash, talks->n_accounts))
		return NULL;
	account = &talks->accounts[talks->n_accounts++];
	*account = (struct account){ .next = talks->list[talk].accounts,
				     .talk = talk,
				     .reporter = reporter,
				     .end = end };
	talks->list[talk].accounts = talks->n_accounts;
	return account;
}

/* ---- Flows ----------------------------------------------------------------------------- */

static struct part *find_part(const struct talks *talks,
			      const struct account *account, uint64_t point)
{
	struct part *part;

	for (uint32_t i = account->parts; i; i = part->next) {
		part = &talks->parts[i - 1];
		if (part->point == point)
			return part;
	}
	return NULL;
}

/* @return NULL: no memory */
static struct part *get_part(struct talks *talks, struct account *account,
			     uint64_t point)
{
	struct part *part = find_part(talks, account, point);

	if (!part && account->n_parts >= PARTS_MAX) {
		point = POINT_REST;
		part = find_part(talks, account, point);
	}
	if (part)
		return part;
	if (!array_reserve(&talks->parts, talks->n_parts, &talks->parts_capacity,
			   sizeof(*talks->parts), FIRST_CAPACITY))
		return NULL;
	part = &talks->parts[talks->n_parts++];
	*part = (struct part){ .next = account->parts, .point = point };
	account->parts = talks->n_parts;
	account->n_parts++;
	return part;
}

static uint64_t point_of(const struct service_report *report)
{
	return report->n_points == 1 && report->point != POINT_REST ?
		       report->point :
		       POINT_MANY;
}

/*
 * Whether records can be of the same packets. One that ends where the next one begins is not:
 * the route may have changed between them.
 */
static bool is_beside(const struct part *one, const struct part *other)
{
	const struct flow_span a = one->last, b = other->last;

	return a.start_ms && b.start_ms && one->last_icmp == other->last_icmp &&
	       ((a.start_ms < b.end_ms && b.start_ms < a.end_ms) ||
		a.start_ms == b.start_ms || a.end_ms == b.end_ms);
}

/*
 * A host that reports each interface by itself has several records of the same time. One that counts
 * a flow once names all interfaces, or one after the other as its routes change.
 */
static bool shows_apart(const struct talks *talks,
			const struct account *account, const struct part *added)
{
	const struct part *part;

	if (added->point == POINT_MANY || added->point == POINT_REST)
		return false;
	for (uint32_t i = account->parts; i; i = part->next) {
		part = &talks->parts[i - 1];
		if (part != added && part->point != POINT_MANY &&
		    part->point != POINT_REST && is_beside(part, added))
			return true;
	}
	return false;
}

static void count_flow(struct part *part, const struct service_report *report)
{
	part->packets += report->packets;
	part->bytes += report->bytes;
	part->retransmits += report->retransmits;
	part->rtt_sum_ns += report->rtt_ns * report->rtt_samples;
	part->rtt_samples += report->rtt_samples;
	part->response_sum_ns += report->response_ns * report->responses;
	part->responses += report->responses;
}

bool talks_add_flow(struct talks *talks, uint32_t index, uint8_t source,
		    uint32_t reporter, const struct service_report *report,
		    struct reporting *reporting)
{
	const struct flow_span span = span_of(report);
	const enum server_end server = find_server(report);
	struct account *account = get_account(talks, index, reporter, source);
	struct part *part =
		account ? get_part(talks, account, point_of(report)) : NULL;
	struct talk *talk = &talks->list[index];

	if (!part)
		return false;
	count_flow(part, report);
	span_join(&part->span, span);
	if (span.start_ms) {
		part->last = span;
		part->last_icmp = report->icmp;
	}
	reporting->is_merged |= report->n_points > 1;
	if (!reporting->is_apart)
		reporting->is_apart = shows_apart(talks, account, part);
	if (server)
		count_accept(talk, server == SERVER_SOURCE ? source : !source);
	note_names(talks, talk, source, report);
	return true;
}

/* ---- Sessions -------------------------------------------------------------------------- */

/* @return NULL: no memory */
static struct session_counts *get_sessions(struct talks *talks,
					   struct account *account)
{
	if (account->sessions)
		return &talks->sessions[account->sessions - 1];
	if (!array_reserve(&talks->sessions, talks->n_sessions,
			   &talks->sessions_capacity, sizeof(*talks->sessions),
			   FIRST_CAPACITY))
		return NULL;
	talks->sessions[talks->n_sessions] = (struct session_counts){ 0 };
	account->sessions = ++talks->n_sessions;
	return &talks->sessions[account->sessions - 1];
}

/* A RST is a reset for both ends, whichever sends it. */
bool talks_add_session(struct talks *talks, uint32_t index, uint8_t source,
		       uint32_t reporter, const struct service_report *report)
{
	struct talk *talk = &talks->list[index];
	struct account *account;
	struct session_counts *counts;
	enum session_failure failure;

	if (report->opened == NETOBS_SESSION_PASSIVE)
		count_accept(talk, source);
	else if (report->opened == NETOBS_SESSION_ACTIVE)
		count_accept(talk, !source);
	note_names(talks, talk, source, report);
	if (report->ended == NETOBS_SESSION_OPEN)
		return true;
	account = get_account(talks, index, reporter, source);
	counts = account ? get_sessions(talks, account) : NULL;
	if (!counts)
		return false;
	failure = session_failure(report->ended);
	counts->connections++;
	counts->refused += failure == SESSION_REFUSED;
	counts->resets += failure == SESSION_RESET;
	counts->timeouts += failure == SESSION_TIMED_OUT;
	counts->failed += failure == SESSION_BROKEN;
	return true;
}

/* ---- All of them ----------------------------------------------------------------------- */

void talks_merge(struct talks *talks, uint32_t to, uint32_t from, bool is_swapped)
{
	struct talk *talk = &talks->list[to], *other = &talks->list[from];
	uint32_t *last = &other->accounts;

	while (*last) {
		struct account *account = &talks->accounts[*last - 1];

		account->end ^= is_swapped;
		last = &account->next;
	}
	*last = talk->accounts;
	talk->accounts = other->accounts;
	for (uint8_t end = 0; end < 2; end++) {
		const uint8_t theirs = end ^ is_swapped;

		talk->accepts[end] = (uint16_t)min_u64(
			UINT16_MAX,
			(uint64_t)talk->accepts[end] + other->accepts[theirs]);
		note_process(talk, end, other->processes[theirs]);
		talk->is_mixed[end] |= other->is_mixed[theirs];
		note_workload(talk, end, other->workloads[theirs]);
		talk->is_workload_mixed[end] |= other->is_workload_mixed[theirs];
	}
	other->accounts = 0;
	other->is_merged = true;
}

static bool is_before(const struct account *a, const struct account *b)
{
	return a->reporter != b->reporter ? a->reporter < b->reporter :
					    a->end < b->end;
}

/* @return the first one of two sorted lists that were made one */
static uint32_t join_sorted(struct account *accounts, uint32_t a, uint32_t b)
{
	uint32_t first = 0, *last = &first;

	while (a && b) {
		uint32_t *least =
			is_before(&accounts[b - 1], &accounts[a - 1]) ? &b : &a;

		*last = *least;
		last = &accounts[*least - 1].next;
		*least = *last;
	}
	*last = a ?: b;
	return first;
}

/* Lists of 1, 2, 4, ... accounts: as a binary counter. */
void talks_sort(struct talks *talks, struct talk *talk)
{
	uint32_t lists[32] = { 0 }, rest = talk->accounts, sorted = 0;

	while (rest) {
		uint32_t list = rest, i = 0;

		rest = talks->accounts[list - 1].next;
		talks->accounts[list - 1].next = 0;
		for (; lists[i]; i++) {
			list = join_sorted(talks->accounts, lists[i], list);
			lists[i] = 0;
		}
		lists[i] = list;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		sorted = join_sorted(talks->accounts, lists[i], sorted);
	talk->accounts = sorted;
}

uint64_t talks_packets(const struct talks *talks, const struct talk *talk)
{
	const struct account *account;
	const struct part *part;
	uint64_t packets = 0;

	for (uint32_t i = talk->accounts; i; i = account->next) {
		account = &talks->accounts[i - 1];
		for (uint32_t k = account->parts; k; k = part->next) {
			part = &talks->parts[k - 1];
			packets += part->packets;
		}
	}
	return packets;
}

void talks_clear(struct talks *talks)
{
	slots_clear(&talks->slots);
	slots_clear(&talks->account_slots);
	talks->n = talks->n_accounts = talks->n_parts = talks->n_sessions = 0;
}

void talks_free(struct talks *talks)
{
	free(talks->list);
	free(talks->accounts);
	free(talks->parts);
	free(talks->sessions);
	slots_free(&talks->slots);
	slots_free(&talks->account_slots);
	texts_free(&talks->workloads);
	*talks = (struct talks){ 0 };
}
