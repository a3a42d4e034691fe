/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "services.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <netobs/session.h>

#include "base/conversation.h"
#include "base/util.h"

enum { NAMES_MAX = 1 << 16 /* of a kind; later ones have no number */ };

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

uint32_t talks_get(struct talks *talks, const struct pair *pair)
{
	return slots_get(&talks->all, pair, sizeof(*pair), sizeof(struct talk));
}

/* ---- Names ----------------------------------------------------------------------------- */

/* Set the number of a name of the kind; where there is no room, as if several names were known. */
static void set_number(struct talks *talks, enum name_kind kind,
		       const char *name, struct end_names *names)
{
	struct slots *known = &talks->names[kind];
	char key[REPORT_WORKLOAD_MAX] = "";
	uint32_t index;

	if (!*name)
		return;
	snprintf(key, sizeof(key), "%s", name);
	index = known->n < NAMES_MAX ?
			slots_get(known, key, sizeof(key), sizeof(key)) :
			slots_find(known, key);
	names->numbers[kind] = index + 1;
	names->is_mixed[kind] = index == SLOT_NONE;
}

const char *talks_name(const struct talks *talks, enum name_kind kind,
		       uint32_t number)
{
	return slots_at(&talks->names[kind], number - 1);
}

/* Note the names that a report has of its source, and of its destination. */
static void note_names(struct talks *talks, struct talk *talk, uint8_t source,
		       const struct service_report *report)
{
	for (uint8_t i = 0; i < 2; i++) {
		struct end_names names = { 0 };

		set_number(talks, NAME_PROCESS, report->processes[i], &names);
		set_number(talks, NAME_WORKLOAD, report->workloads[i], &names);
		names_join(&talk->names[i ? !source : source], &names);
	}
}

/* ---- Reports --------------------------------------------------------------------------- */

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

/* @return NULL: no memory */
static struct account *get_account(struct talks *talks, uint32_t talk,
				   uint32_t reporter)
{
	const uint32_t key[] = { talk, reporter };
	const uint32_t index = slots_get(&talks->accounts, key, sizeof(key),
					 sizeof(struct account));

	return index == SLOT_NONE ? NULL : slots_at(&talks->accounts, index);
}

/* ---- Flows ----------------------------------------------------------------------------- */

static struct part_counts counts_of(const struct service_report *report)
{
	return (struct part_counts){
		.packets = report->packets,
		.bytes = report->bytes,
		.retransmits = report->retransmits,
		.retransmitted_bytes = report->retransmitted_bytes,
		.uncertain = report->late_unknown + (report->sampling > 1),
		.rtt_sum_ns = report->rtt_ns * report->rtt_samples,
		.rtt_samples = report->rtt_samples,
		.response_sum_ns = report->response_ns * report->responses,
		.responses = report->responses,
	};
}

static void note_start(struct part *part, int64_t start_ns)
{
	if (!part->start_ns || (start_ns && start_ns < part->start_ns))
		part->start_ns = start_ns;
}

bool talks_add_flow(struct talks *talks, uint32_t index, uint8_t source,
		    uint32_t reporter, const struct service_report *report)
{
	const struct part_counts counts = counts_of(report);
	const enum server_end server = find_server(report);
	struct account *account = get_account(talks, index, reporter);
	struct talk *talk = talk_at(talks, index);

	if (!account)
		return false;
	account->has_flows[source] = true;
	counters_add(&account->sums[source].counts, &counts, sizeof(counts));
	account->sums[source].tcp_flags |= report->tcp_flags;
	span_join(&account->sums[source].span, span_of(report));
	note_start(&account->sums[source], report->start_ns);
	talk->packets += report->packets;
	if (server)
		talk->accepts[server == SERVER_SOURCE ? source : !source]++;
	note_names(talks, talk, source, report);
	return true;
}

/* ---- Sessions -------------------------------------------------------------------------- */

/* A RST is a reset for both ends, whichever sends it. */
bool talks_add_session(struct talks *talks, uint32_t index, uint8_t source,
		       uint32_t reporter, const struct service_report *report)
{
	struct talk *talk = talk_at(talks, index);
	struct account *account;
	struct session_counts *counts;
	enum session_failure failure;

	if (report->opened == NETOBS_SESSION_PASSIVE)
		talk->accepts[source]++;
	else if (report->opened == NETOBS_SESSION_ACTIVE)
		talk->accepts[!source]++;
	note_names(talks, talk, source, report);
	if (report->ended == NETOBS_SESSION_OPEN)
		return true;
	account = get_account(talks, index, reporter);
	if (!account)
		return false;
	counts = &account->sessions[source];
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
	struct talk *talk = talk_at(talks, to), *other = talk_at(talks, from);

	for (int end = 0; end < 2; end++) {
		talk->accepts[end] += other->accepts[end ^ is_swapped];
		names_join(&talk->names[end], &other->names[end ^ is_swapped]);
	}
	talk->is_ordered |= other->is_ordered;
	talk->packets += other->packets;
	other->is_merged = true;
	other->is_swapped = is_swapped;
	other->merged_into = to + 1;
}

static int compare_accounts(const void *a, const void *b)
{
	const struct account *one = a, *two = b;

	if (one->joined != two->joined)
		return one->joined < two->joined ? -1 : 1;
	return (one->reporter > two->reporter) - (one->reporter < two->reporter);
}

struct account *talks_join(struct talks *talks)
{
	struct account *accounts = talks->accounts.items;

	for (uint32_t i = 0; i < talks->accounts.n; i++) {
		const struct talk *talk = talk_at(talks, accounts[i].talk);

		accounts[i].is_swapped = false;
		for (; talk->merged_into;
		     talk = talk_at(talks, talk->merged_into - 1))
			accounts[i].is_swapped ^= talk->is_swapped;
		accounts[i].joined = (uint32_t)(talk - talk_at(talks, 0));
	}
	if (accounts)
		qsort(accounts, talks->accounts.n, sizeof(*accounts),
		      compare_accounts);
	return accounts;
}

void talks_clear(struct talks *talks)
{
	slots_clear(&talks->all);
	slots_clear(&talks->accounts);
}

void talks_free(struct talks *talks)
{
	slots_free(&talks->all);
	slots_free(&talks->accounts);
	for (int kind = 0; kind < NAME_KINDS; kind++)
		slots_free(&talks->names[kind]);
	*talks = (struct talks){ 0 };
}
