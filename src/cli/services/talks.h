/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Conversations in memory: what each reporter has said of both directions. */
#ifndef NETOBS_CLI_SERVICES_TALKS_H
#define NETOBS_CLI_SERVICES_TALKS_H

#include "report.h"
#include "slots.h"

/* A tuple without direction: the lower end, by address and port, is first. */
struct pair {
	uint8_t addrs[2][16];
	uint16_t ports[2];
	uint8_t proto;
	uint8_t zero[3];
};

/* How a reporter reports a flow that passes several interfaces. */
struct reporting {
	bool is_merged; /* a record named several interfaces */
	bool is_apart; /* a record for each: two of the same time and tuple named different ones */
};

enum {
	PARTS_MAX = 64 /* parts of a direction; further ones are in one more, POINT_REST */
};

/* Points that are no interface. */
#define POINT_MANY 0ULL /* several, or none is known */
#define POINT_REST UINT64_MAX

/* The sums that a reporter stated of a direction, at one point. */
struct part {
	uint32_t next; /* next part of the account, plus 1 */
	uint64_t point; /* the only interface where it was seen, or POINT_MANY, POINT_REST */
	struct flow_span last; /* of the last record with a time; 0: none */
	uint16_t last_icmp;    /* type and code of that record */
	struct flow_span span; /* of all records */
	uint64_t packets, bytes, retransmits;
	uint64_t rtt_sum_ns, rtt_samples, response_sum_ns, responses;
};

/* Connections of sockets that have ended. */
struct session_counts {
	uint64_t connections, refused, resets, timeouts, failed;
};

/* All reports of a reporter on one end of a talk: on packets from it, and on its sockets. */
struct account {
	uint32_t next; /* next account of the talk, plus 1 */
	uint32_t talk, reporter;
	uint32_t parts,
		sessions; /* the first part, the sessions, plus 1; 0: none */
	uint8_t n_parts;
	uint8_t end; /* index in the pair */
};

struct talk {
	struct pair pair;
	uint32_t accounts; /* the first one, plus 1; 0: none */
	uint16_t accepts[2]; /* how often reports show that this end is the service */
	bool is_merged;	  /* into another talk */
	bool is_mixed[2]; /* the end has several processes */
	char processes[2][EDGE_NAME_MAX];
	uint32_t workloads[2]; /* number in struct talks; 0: unknown */
	bool is_workload_mixed[2];
};

/* All zero: there are none. */
struct talks {
	struct talk *list;
	uint32_t n, capacity;
	struct account *accounts;
	uint32_t n_accounts, accounts_capacity;
	struct part *parts;
	uint32_t n_parts, parts_capacity;
	struct session_counts *sessions;
	uint32_t n_sessions, sessions_capacity;
	struct slots slots, account_slots;
	struct texts workloads; /* their names; talks_clear() leaves them */
};

/* @ret_source: which end of the pair is the source of @face */
struct pair pair_of(const struct flow_face *face, uint8_t *ret_source);

/* @return its index; it may be new; SLOT_NONE: no memory */
uint32_t talks_get(struct talks *talks, const struct pair *pair);

/** Put the earlier start and the later end of both into @span; a start of 0 is none. */
void span_join(struct flow_span *span, struct flow_span more);

/** @return its times; 0: it does not say both, or its end is before its start */
struct flow_span span_of(const struct service_report *report);

/** @param reporting  of @reporter; updated by the report @return false: no memory */
bool talks_add_flow(struct talks *talks, uint32_t talk, uint8_t source,
		    uint32_t reporter, const struct service_report *report,
		    struct reporting *reporting);
bool talks_add_session(struct talks *talks, uint32_t talk, uint8_t source,
		       uint32_t reporter, const struct service_report *report);

/**
 * Give @to all of @from, whose first end is the second one of @to if @is_swapped. Reports cannot be added
 * any more.
 */
void talks_merge(struct talks *talks, uint32_t to, uint32_t from,
		 bool is_swapped);

/** Sort the accounts of @talk by reporter and end. */
void talks_sort(struct talks *talks, struct talk *talk);

/** @return packets of all reporters */
uint64_t talks_packets(const struct talks *talks, const struct talk *talk);

void talks_clear(struct talks *talks);
void talks_free(struct talks *talks);

/* ---- Adds a conversation to its edge: each of its packets once ------------------------- */

/**
 * @param service    the end of the pair that is the service
 * @param reporting  of each reporter
 */
void talk_edge(struct talks *talks, struct talk *talk, uint8_t service,
	       const struct reporting *reporting, struct edge *ret_edge);

/* ---- Tuples that NAT gives conversations, and the tuples that these had before --------- */

struct nat_link {
	struct pair behind, before;
	bool is_swapped; /* the first end of one is the second one of the other */
	bool is_shared; /* several conversations had the tuple, one after the other */
	bool is_counted; /* the host with the NAT reports flows, too */
};

/* All zero: there are none. */
struct nat_links {
	struct nat_link *list;
	uint32_t n, capacity;
	struct slots slots;
};

/* The answer about a tuple. */
enum nat_answer {
	NAT_NONE, /* not behind a NAT, as far as is known */
	NAT_FOUND,
	NAT_SHARED, /* of several conversations, all of which are reported */
};

/**
 * Find a report's tuple before all NAT of its host, and note its other tuples.
 *
 * @param ret_root  that tuple; the report's own if it has no other
 * @return false: no memory
 */
bool nat_links_note(struct nat_links *links, const struct service_report *report,
		    struct flow_face *ret_root);

/**
 * @param ret_before  NAT_FOUND: the tuple before all NAT
 * @param ret_is_swapped  NAT_FOUND: its first end is the second one of @pair
 */
enum nat_answer nat_links_find(struct nat_links *links, const struct pair *pair,
			       struct pair *ret_before, bool *ret_is_swapped);

void nat_links_free(struct nat_links *links);

#endif
