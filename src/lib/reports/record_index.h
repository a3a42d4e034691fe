/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records of netobs - flows, mappings and sessions - in memory, found by any tuple of their
 * conversation, in either direction, and by time. Results are never guessed: if records contradict
 * each other, there is no result.
 */
#ifndef NETOBS_REPORTS_RECORD_INDEX_H
#define NETOBS_REPORTS_RECORD_INDEX_H

#include "base/json_reader.h"
#include "base/slots.h"

#include <netobs/annotate.h>

#include <stdbool.h>
#include <stdint.h>

/*
 * The members that records of all exporters have: the tuple of the packets, and the time. A
 * conversation has a tuple on each side of a NAT.
 */

/* ---- Flow fields ----------------------------------------------------------------------- */

/* Single values of records, in JSON. Each function leaves its result untouched where it fails. */

/**
 * Read a whole number without sign or exponent; "7.0" is 7.
 *
 * @return false: it is another, greater than @most, or no number
 */
bool flow_number_read(struct json_value value, uint64_t most,
		      uint64_t *ret_number);

/** @return false: it is no text of an IPv4 or IPv6 address */
bool flow_address_read(struct json_value value, uint8_t ret_ip[16]);

/* ---- Times of records, as exporters write them ----------------------------------------- */

/* Units of numeric times. */
enum time_unit { TIME_S, TIME_MS, TIME_US, TIME_NS };

struct flow_time {
	int64_t ms;	/* since 1970, at most 2^53; 0: not known */
	bool is_second; /* the exact time is within the second that begins then */
};

/**
 * Read a number, also as text, or a date such as "2026-11-21T17:06:31.709Z", with a "T" or a blank,
 * and "Z", "+01:00", "+0100" or nothing, which is the local time zone, at the end.
 *
 * @param ret_time  untouched on failure
 * @return false: it is none
 */
bool flow_time_read(struct json_value value, enum time_unit unit,
		    struct flow_time *ret_time);

/** @return the time in ms since 1970 that @value is, a number of them; 0: it is none */
int64_t flow_time_ms(struct json_value value);

/* ---- Flow face ------------------------------------------------------------------------- */

/* Addresses, ports and the protocol of packets in one direction. Without ports: 0. */
struct flow_face {
	uint8_t src[16], dst[16]; /* IPv4 is ::ffff:a.b.c.d */
	uint16_t src_port, dst_port;
	uint8_t proto;
	uint8_t zero[3];
};

/* Times of the first and the last packet, in ms since 1970. */
struct flow_span {
	int64_t start_ms, end_ms;
};

bool flow_face_has_ports(uint8_t proto);

/**
 * Read other addresses and ports of a record of netobs, such as those with "Xlat" before their
 * names; the protocol is that of @face.
 *
 * @return false: the record has none
 */
bool flow_face_read_other(struct json_value record, const char *prefix,
			  const struct flow_face *face,
			  struct flow_face *ret_other);

/** @return the tuple of packets in the other direction */
struct flow_face flow_face_back(const struct flow_face *face);

bool flow_face_equal(const struct flow_face *a, const struct flow_face *b);

/* ---- Layouts --------------------------------------------------------------------------- */

/* Names of the ends and times of a flow, in JSON records of netobs and of other programs. */

/**
 * Read a record of any layout.
 *
 * @param ret_span  untouched if it has no time
 * @return false: it has no addresses or no protocol in a known layout, several addresses, protocols
 *         or ports, or what is none; *ret_face has no meaning
 */
bool layout_read(struct json_value record, struct flow_face *ret_face,
		 struct flow_span *ret_span);

/** Read a record of netobs. The rest is as above. */
bool layout_read_netobs(struct json_value record, struct flow_face *ret_face,
			struct flow_span *ret_span);

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
