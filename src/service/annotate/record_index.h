/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records of netobs - flows, mappings and sessions - in memory, to be found by any of the faces of
 * their conversation, in either direction, and by time. What is found is never guessed: where
 * records contradict each other, there is none.
 */
#ifndef NETOBS_SERVICE_ANNOTATE_RECORD_INDEX_H
#define NETOBS_SERVICE_ANNOTATE_RECORD_INDEX_H

#include <stdint.h>

#include "end_process.h"
#include "flow_face.h"

struct record_index;

/* What is known of a conversation whose packets have a face. */
struct conversation_facts {
	bool has_before, has_after; /* NAT has changed them, or will */
	struct flow_face before,
		after; /* before all NAT and after it, in the same direction */
	uint64_t id; /* ConversationId; 0: it is not known, or records contradict each other */
	uint64_t zone; /* of conntrack, plus 1; 0: not known */
	const struct end_process *ends[2]; /* of the source, the destination; NULL: not known */
	bool is_contradicted[2]; /* of the ends: records have several */
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
 * Find the conversation that packets with @face belonged to in that time.
 *
 * @param slack_ms   by which clocks may differ
 * @param ret_facts  of RECORD_FOUND
 */
enum record_answer record_index_find(const struct record_index *index,
				     const struct flow_face *face,
				     struct flow_span span, int64_t slack_ms,
				     struct conversation_facts *ret_facts);

#endif
