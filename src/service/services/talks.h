/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Conversations in memory: what each reporter has said of both directions. */
#ifndef NETOBS_SERVICE_SERVICES_TALKS_H
#define NETOBS_SERVICE_SERVICES_TALKS_H

#include "report.h"
#include "slots.h"

/* A tuple without direction: the lower end, by address and port, is first. */
struct pair {
	uint8_t addrs[2][16];
	uint16_t ports[2];
	uint8_t proto;
	uint8_t zero[3];
};

/* What a reporter has said of a direction, at one place. */
struct part {
	uint32_t next; /* of the same talk, plus 1 */
	uint32_t reporter;
	uint64_t point; /* the only place where it was seen; 0: several */
	uint8_t source; /* the end of the pair that sends */
	int64_t start_ms, end_ms;
	uint64_t packets, bytes, retransmits;
	uint64_t rtt_sum_ns, rtt_samples, response_sum_ns, responses;
};

/* Connections of sockets at one end that have ended, by a reporter. */
struct session_part {
	uint32_t next;
	uint32_t reporter;
	uint8_t end; /* of the pair, whose sockets they were */
	uint32_t connections, refused, resets, timeouts, failed;
};

struct talk {
	struct pair pair;
	uint32_t parts, session_parts; /* the first ones, plus 1; 0: none */
	uint16_t accepts[2]; /* how often reports show that this end is the service */
	bool is_merged;	  /* into another talk */
	bool is_mixed[2]; /* of the ends: there are several processes */
	char processes[2][EDGE_NAME_MAX];
};

/* All zero: there are none. */
struct talks {
	struct talk *list;
	uint32_t n, capacity;
	struct part *parts;
	uint32_t n_parts, parts_capacity;
	struct session_part *sessions;
	uint32_t n_sessions, sessions_capacity;
	struct slots slots;
};

/* @ret_source: which end of the pair is the source of @face */
struct pair pair_of(const struct flow_face *face, uint8_t *ret_source);

/* @return its index; it may be new; SLOT_NONE: no memory */
uint32_t talks_get(struct talks *talks, const struct pair *pair);

/* @return false: no memory */
bool talks_add_flow(struct talks *talks, uint32_t talk, uint8_t source,
		    uint32_t reporter, const struct service_report *report);
bool talks_add_session(struct talks *talks, uint32_t talk, uint8_t source,
		       uint32_t reporter, const struct service_report *report);

/* Give @to all of @from, whose first end is the second one of @to if @is_swapped. */
void talks_merge(struct talks *talks, uint32_t to, uint32_t from,
		 bool is_swapped);

void talks_clear(struct talks *talks);
void talks_free(struct talks *talks);

#endif
