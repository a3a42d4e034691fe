/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Edges of the service map: a client's address, and the address, port and protocol of the service
 * that it uses. Their number is bounded: if there are too many, those with fewest bytes are
 * moved to one sum of others, so that the edges and the others always add up to the total.
 */
#ifndef NETOBS_REPORTS_EDGES_H
#define NETOBS_REPORTS_EDGES_H

#include "base/slots.h"

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
	uint64_t n_others;	/* how often an edge had to */
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

#endif
