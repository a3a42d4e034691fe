/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records of netobs - flows, mappings and sessions - in memory, found by any tuple of their
 * conversation, in either direction, and by time. Results are never guessed: if records contradict
 * each other, there is no result.
 */
#ifndef NETOBS_CLI_ANNOTATE_RECORD_INDEX_H
#define NETOBS_CLI_ANNOTATE_RECORD_INDEX_H

#include <stdint.h>

#include "end_process.h"
#include "flow_face.h"

struct record_index;

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

/** @return yours; NULL: no memory */
struct record_index *record_index_new(void);
void record_index_free(struct record_index *index); /* NULL is fine */

/**
 * Add a record; those of other types, or without addresses or times, are ignored.
 *
 * @return 0; -ENOMEM
 */
int record_index_add(struct record_index *index, struct json_value record);

/** @return how many entries there are: records of a flow, one after the other, share one */
uint64_t record_index_count(const struct record_index *index);

/**
 * Find the conversation of packets with the tuple @face in that time.
 *
 * @param slack_ms   by which clocks may differ
 * @param ret_facts  set for RECORD_FOUND
 */
enum record_answer record_index_find(const struct record_index *index,
				     const struct flow_face *face,
				     struct flow_span span, int64_t slack_ms,
				     struct conversation_facts *ret_facts);

#endif
