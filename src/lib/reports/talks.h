/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Conversations in memory: what each reporter has said of both directions. */
#ifndef NETOBS_REPORTS_TALKS_H
#define NETOBS_REPORTS_TALKS_H

#include "base/slots.h"
#include "report.h"

/* A tuple without direction: the lower end, by address and port, is first. */
struct pair {
	uint8_t addrs[2][16];
	uint16_t ports[2];
	uint8_t proto;
	uint8_t zero[3];
};

struct reporter {
	char identity[REPORTER_MAX];
	char name[REPORTER_MAX];
};

struct part_counts {
	uint64_t packets, bytes, retransmits, retransmitted_bytes;
	uint64_t uncertain; /* what may be missing from retransmitted_bytes: segments, sampled reports */
	uint64_t rtt_sum_ns, rtt_samples, response_sum_ns, responses;
};

/* The sum of flow reports. */
struct part {
	struct flow_span span;
	uint16_t tcp_flags;
	int64_t start_ns; /* of the first packet; 0: not known */
	struct part_counts counts;
};

/* Connections of sockets that have ended. */
struct session_counts {
	uint64_t connections, refused, resets, timeouts, failed;
};

/* All reports of a reporter on a talk, by the end that sends the packets, or has the sockets. */
struct account {
	uint32_t talk, reporter; /* the key */
	bool has_flows[2];
	struct part sums[2]; /* of its flows */
	struct session_counts sessions[2];
	/* Once talks were joined: the talk that it counts for, and whether that has the ends the other way round. */
	uint32_t joined;
	bool is_swapped;
};

struct talk {
	struct pair pair;
	uint64_t packets; /* of all reporters */
	uint32_t accepts[2]; /* how often reports show that this end is the service */
	struct end_names names[2];
	uint32_t edge_hash;   /* of the key of its edge */
	uint8_t service;      /* the end that is the service */
	uint8_t evidence;     /* enum service_evidence */
	bool is_ordered;      /* the order of datagrams is a part of that */
	bool is_merged;	      /* into another talk, or left to other reports */
	bool is_swapped;      /* its first end is the second one of that */
	uint32_t merged_into; /* plus 1; 0: no talk */
};

/* All zero: there are none. */
struct talks {
	struct slots all; /* struct talk */
	struct slots accounts;
	struct slots names[NAME_KINDS]; /* talks_clear() leaves them */
};

static inline struct talk *talk_at(const struct talks *talks, uint32_t i)
{
	return slots_at(&talks->all, i);
}

/* @ret_source: which end of the pair is the source of @face */
struct pair pair_of(const struct flow_face *face, uint8_t *ret_source);

/* @return its index; it may be new; SLOT_NONE: no memory */
uint32_t talks_get(struct talks *talks, const struct pair *pair);

/** Put the earlier start and the later end of both into @span; a start of 0 is none. */
void span_join(struct flow_span *span, struct flow_span more);

/** @return its times; 0: it does not say both, or its end is before its start */
struct flow_span span_of(const struct service_report *report);

/** @return false: no memory */
bool talks_add_flow(struct talks *talks, uint32_t talk, uint8_t source,
		    uint32_t reporter, const struct service_report *report);
bool talks_add_session(struct talks *talks, uint32_t talk, uint8_t source,
		       uint32_t reporter, const struct service_report *report);

/** @return the name of a number */
const char *talks_name(const struct talks *talks, enum name_kind kind,
		       uint32_t number);

/** Give @to all of @from, whose first end is the second one of @to if @is_swapped. */
void talks_merge(struct talks *talks, uint32_t to, uint32_t from,
		 bool is_swapped);

/**
 * Sort the accounts by the talk that they count for, and by reporter. Reports cannot be added any
 * more.
 *
 * @return all accounts
 */
struct account *talks_join(struct talks *talks);

void talks_clear(struct talks *talks);
void talks_free(struct talks *talks);

/* ---- Adds a conversation to its edge: each of its packets once ------------------------- */

struct edge_key talk_edge_key(const struct talk *talk);

/** @param accounts  of the talk, @n of them */
void talk_edge(const struct talk *talk, const struct account *accounts,
	       uint32_t n, struct edge *ret_edge);

#endif
