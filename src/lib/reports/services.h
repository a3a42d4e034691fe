/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Reports of conversations by any number of hosts, and the edges of the service map that they make.
 *
 * A conversation has the addresses and ports from before all NAT, as far as any host knows them. It
 * counts once, however many hosts and sides of a NAT report it: in each direction by the
 * host that has seen most of its packets, which is the sender's, unless that has lost reports.
 */
#ifndef NETOBS_REPORTS_SERVICES_H
#define NETOBS_REPORTS_SERVICES_H

#include "base/slots.h"
#include "record_index.h"

#include <netobs/services.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Edges of the service map: a client's address, and the address, port and protocol of the service
 * that it uses. Their number is bounded: if there are too many, those with fewest bytes are
 * moved to one sum of others, so that the edges and the others always add up to the total.
 */

enum { EDGES_MAX = 65536 };

/* Directions of packets of an edge. */
enum edge_way { TO_SERVICE, TO_CLIENT, EDGE_WAYS };

enum edge_end { END_CLIENT, END_SERVICE, EDGE_ENDS };

/* The names of an end, as numbers; 0 where none is known. */
enum name_kind { NAME_PROCESS, NAME_WORKLOAD, NAME_KINDS };

struct end_names {
	uint32_t numbers[NAME_KINDS];
	bool is_mixed[NAME_KINDS]; /* there are several */
};

/* Evidence for which end is the service; an edge has the least certain one. */
enum service_evidence {
	EVIDENCE_HANDSHAKE, /* a session, or the flags of a packet */
	EVIDENCE_ANSWERS,   /* the first datagram of the end came second */
	EVIDENCE_ACCEPTS,   /* the end has accepted another conversation */
	EVIDENCE_PORT,	    /* the end has the lower port, or address */
};

struct edge_key {
	uint8_t client[16], service[16]; /* IPv4 is ::ffff:a.b.c.d */
	uint16_t port; /* port of the service; 0: the protocol has none */
	uint8_t proto;
	uint8_t zero[5];
};

/* Counters, all of which edge_sum_add() adds up. */
struct edge_counts {
	uint64_t conversations;
	uint64_t packets[EDGE_WAYS], bytes[EDGE_WAYS];
	uint64_t retransmits; /* both ways */
	/*
	 * For each way: the sum of round-trip times from the observer to the receiver, each
	 * multiplied by its number of samples; ns
	 */
	uint64_t rtt_sum_ns[EDGE_WAYS], rtt_samples[EDGE_WAYS];
	uint64_t response_sum_ns, responses; /* sum over answers to requests */
	/* Sessions. */
	uint64_t connections, refused, resets, timeouts, failed;
	uint64_t repeated_packets; /* packets of hosts' reports that are not in @packets */
	uint64_t lost_bytes; /* both ways; of those conversations for which it is known: */
	uint64_t loss_conversations;
};

struct edge_sum {
	struct edge_counts counts;
	int64_t start_ms, end_ms; /* 0: no packets */
	uint32_t counted_by[EDGE_WAYS]; /* the reporter that most packets are from, plus 1; 0: none */
	uint64_t counted_packets[EDGE_WAYS]; /* by it */
	uint32_t hosts; /* most hosts that have reported one conversation; 0: not counted */
	uint8_t evidence; /* enum service_evidence */
	struct end_names names[EDGE_ENDS];
};

struct edge {
	struct edge_key key;
	struct edge_sum sum;
	uint64_t missing_bytes; /* at most so many more are in the others */
};

/* All zero but @max: no edges. */
struct edges {
	struct slots all;
	uint32_t max;		/* edges that edges_trim() leaves, at least 2 */
	struct edge_sum others; /* sum of evicted edges */
	uint64_t n_others;	/* how often an edge was evicted */
	uint64_t evicted_bytes; /* bytes that an edge may have there, at most */
	bool is_fresh;		/* no edge that is added was evicted earlier */
};

static inline struct edge *edge_at(const struct edges *edges, uint32_t i)
{
	return slots_at(&edges->all, i);
}

void names_join(struct end_names *names, const struct end_names *more);

uint64_t edge_bytes(const struct edge_sum *sum);
uint64_t edge_packets(const struct edge_sum *sum);

/* The round-trip time between both ends, in ns; 0: it is not known. */
uint64_t edge_rtt_ns(const struct edge_counts *counts);

/* The mean time to an answer, in ns; 0: it is not known. */
uint64_t edge_response_ns(const struct edge_counts *counts);

void edge_sum_add(struct edge_sum *sum, const struct edge_sum *more);

/** Without memory for one more edge, it is added to the others. */
void edges_add(struct edges *edges, const struct edge_key *key,
	       const struct edge_sum *sum);

/* Keep the edges with most bytes. One that is added again lacks at most @evicted_bytes. */
void edges_trim(struct edges *edges);

/* Most bytes first, then by key; edges_add() is possible afterwards. */
void edges_sort(struct edges *edges);

void edges_clear(struct edges *edges);
void edges_free(struct edges *edges);

/* Reads the members of a record that the service map needs: from JSON, or from the record itself. */

struct netobs_flow;
struct netobs_session;

enum {
	REPORTER_MAX =
		NETOBS_SERVICES_HOST_MAX, /* bytes of a name or an identity, with its NUL */
	REPORT_WHY_MAX = 96, /* size of the reason why a record was refused */
	REPORT_PROCESS_MAX = 16, /* size of the name of a process, with its NUL */
	REPORT_WORKLOAD_MAX = 192, /* size of the name of a workload */
};

enum report_kind {
	REPORT_NONE, /* a record of another type, which the map does not use */
	REPORT_FLOW, /* packets of a direction */
	REPORT_SESSION, /* a socket's connection has ended */
	REPORT_MAPPING, /* addresses that NAT gives a conversation */
};

struct service_report {
	enum report_kind kind;
	struct flow_face face; /* tuple of its packets, or its socket; ICMP without type */
	struct flow_face others[2]; /* before or behind NAT */
	uint32_t n_others;
	uint64_t conversation_id; /* 0: not known */
	uint16_t icmp;		  /* type << 8 | code */
	int64_t start_ms, end_ms;
	int64_t start_ns; /* of a flow, as <netobs/flow.h> has it; 0: not known */

	/* Flows. */
	uint64_t packets, bytes, retransmits, retransmitted_bytes, late_unknown;
	uint64_t rtt_ns, rtt_samples, response_ns, responses;
	uint32_t sampling; /* 0: all packets were counted */
	uint16_t tcp_flags;
	uint8_t tcp_combined;
	bool has_combined; /* false: 0 means unknown */

	/* Sessions. */
	uint8_t opened,
		ended; /* enum netobs_session_opened, netobs_session_ended */

	char processes[2][REPORT_PROCESS_MAX]; /* of source and destination; "": unknown */
	/* Workloads of both ends: "NAMESPACE/POD", or the name of a container in no pod; "": not known. */
	char workloads[2][REPORT_WORKLOAD_MAX];
};

/* The reporter of a record in JSON. */
struct report_origin {
	char identity[REPORTER_MAX]; /* "": the record does not say */
	char name[REPORTER_MAX];
};

/**
 * Read a record.
 *
 * @param ret_why  why it was refused: a member of it is wrong, or it is no record of netobs
 * @return false: it was refused; *ret_report has no meaning
 */
bool report_read(struct json_value record, struct service_report *ret_report,
		 struct report_origin *ret_origin, char ret_why[REPORT_WHY_MAX]);

void report_of_flow(const struct netobs_flow *flow,
		    struct service_report *ret_report);
void report_of_session(const struct netobs_session *session,
		       struct service_report *ret_report);

/* Conversations in memory: what each reporter has said of both directions. */

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

struct conversations;

/** @return yours; NULL: no memory */
struct conversations *conversations_new(void);
void conversations_free(struct conversations *all); /* NULL is fine */

/**
 * Find the number of a reporter, from 0 on.
 *
 * @param name  for people; of the first call
 * @return 0; -ENOMEM
 */
int conversations_reporter(struct conversations *all, const char *identity,
			   const char *name, uint32_t *ret_reporter);

/** @param reporter  of conversations_reporter() */
const char *conversations_reporter_name(const struct conversations *all,
					uint32_t reporter);

/** @return the only name known at an end, valid until conversations_add(); NULL: none, or several */
const char *conversations_name(const struct conversations *all,
			       const struct edge_sum *sum, enum edge_end end,
			       enum name_kind kind);

/** @return 0; -ENOMEM */
int conversations_add(struct conversations *all, uint32_t reporter,
		      const struct service_report *report);

/**
 * Add all conversations to their edges, and remove them. Which ends accept connections, which tuples
 * are of NAT, and the totals stay known.
 *
 * @return 0; -ENOMEM: some are missing
 */
int conversations_take(struct conversations *all, struct edges *edges);

/** @return the totals of all reports: what of them is counted here, and of records what the caller adds */
struct netobs_services_stats *conversations_totals(struct conversations *all);

#endif
