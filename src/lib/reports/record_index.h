/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records of netobs - flows, mappings and sessions - in memory, found by any tuple of their
 * conversation, in either direction, and by time. Results are never guessed: if records contradict
 * each other, there is no result.
 */
#ifndef NETOBS_REPORTS_RECORD_INDEX_H
#define NETOBS_REPORTS_RECORD_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include <netobs/annotate.h>

#include "base/json_reader.h"
#include "base/slots.h"
#include "flow_face.h"

/* ---- The facts that a record of netobs states about a conversation --------------------- */

/* A process at the end of conversations, as records name it: each of an agent is there once. */
struct end_process {
	uint64_t pid;
	uint64_t agent; /* hash of the agent that reported it; 0: unknown */
	char *members[2]; /* JSON members, each after a comma: as source, as destination */
};

enum {
	NEWS_FACES_MAX = 3 /* tuples of a flow that two NATs of the host translate */
};

struct record_facts {
	struct flow_span span;
	uint64_t id;	    /* ConversationId; 0: not known */
	uint64_t zone, vni; /* plus 1; 0: not known */
	uint64_t agent;	    /* a hash; 0: not known */
	const struct end_process *ends[2];
	uint8_t n_faces;
	bool is_open; /* a mapping that has not ended: it lasts as long as the records */
};

struct record_news {
	struct record_facts facts;
	struct flow_face faces[NEWS_FACES_MAX]; /* tuples in the order in which packets have them */
	bool is_end;				/* of a mapping */
};

/**
 * Read a flow, a mapping or a session.
 *
 * @param processes  gets those that the record names
 * @param ret_news   has no meaning unless it returns 1
 * @return 1; 0: it is of another type, or has no addresses or times; -ENOMEM
 */
int record_news_read(struct json_value record, struct slots *processes,
		     struct record_news *ret_news);

/**
 * Numbers of processes are those of a host. Of one host, a number may name several programs, which the
 * process has executed one after the other.
 *
 * @return whether both are one process
 */
bool end_process_is_same(const struct end_process *a,
			 const struct end_process *b);

/* Free the processes of records. */
void end_processes_done(struct slots *processes);

/* ---- Record index ---------------------------------------------------------------------- */

/* Facts about the conversation of packets with a tuple. */
struct conversation_facts {
	bool has_before, has_after; /* NAT has changed them, or will */
	struct flow_face before,
		after; /* before all NAT and after it, in the same direction */
	uint64_t id; /* ConversationId; 0: it is not known, or records contradict each other */
	uint64_t zone; /* zone of conntrack, plus 1; 0: unknown */
	const struct end_process *ends[2]; /* process of the source, and of the destination; NULL: unknown */
	bool is_contradicted[2]; /* records name several processes of the end */
};

enum record_answer {
	RECORD_NONE,
	RECORD_FOUND,
	RECORD_AMBIGUOUS, /* several conversations, or several processes at an end */
};

/**
 * Add a record; those of other types, or without addresses or times, are ignored.
 *
 * @return 0; -ENOMEM
 */
int record_index_add(struct netobs_annotator *index, struct json_value record);

/* The most by which the clocks of hosts may differ. */
enum { RECORD_SLACK_MS = 1000 };

/**
 * Find the conversation of packets with the tuple @face in that time.
 *
 * @param ret_facts  set for RECORD_FOUND
 */
enum record_answer record_index_find(const struct netobs_annotator *index,
				     const struct flow_face *face,
				     struct flow_span span,
				     struct conversation_facts *ret_facts);

/* ---- The table of a record index, for what adds to it and what searches it ------------- */

enum {
	LOOKS = 1 << 14, /* entries with a tuple that are checked, the newest first */
};

/* A tuple of an entry, in the list of all nodes of this tuple. */
struct face_node {
	struct face_node *next;
	struct record_entry *entry;
	struct flow_face face;
};

struct record_entry {
	struct record_entry *next;
	struct record_facts facts;
	struct face_node faces[]; /* in the order in which packets have them */
};

struct netobs_annotator {
	struct slots faces; /* the list of the nodes of each tuple, of either direction */
	struct record_entry *entries;
	uint64_t n_entries; /* records of a flow, one after the other, share one */
	struct slots processes;
	int64_t latest_ms; /* latest time of all records */
};

/* @return the first node of @face, of either direction; NULL: there is none */
struct face_node *record_index_nodes(const struct netobs_annotator *index,
				     const struct flow_face *face);

#endif
