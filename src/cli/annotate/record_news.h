/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The facts that a record of netobs states about a conversation. */
#ifndef NETOBS_CLI_ANNOTATE_RECORD_NEWS_H
#define NETOBS_CLI_ANNOTATE_RECORD_NEWS_H

#include <stdbool.h>
#include <stdint.h>

#include "end_process.h"
#include "flow_face.h"

enum {
	NEWS_FACES_MAX = 3, /* tuples of a flow that two NATs of the host translate */
	NEWS_SECRET_WORDS = 10,
};

struct record_news {
	struct flow_face faces[NEWS_FACES_MAX]; /* tuples in the order in which packets have them */
	uint8_t n_faces;
	struct flow_span span;
	uint64_t id;	    /* ConversationId; 0: not known */
	uint64_t zone, vni; /* plus 1; 0: not known */
	uint64_t agent;	    /* a hash; 0: not known */
	const struct end_process *ends[2];
	bool is_open, is_end; /* of mappings only */
};

/**
 * Read a flow, a mapping or a session.
 *
 * @param processes  gets those that the record names
 * @param secret     of hashes: NEWS_SECRET_WORDS
 * @param ret_news   has no meaning unless it returns 1
 * @return 1; 0: it is of another type, or has no addresses or times; -ENOMEM
 */
int record_news_read(struct json_value record, struct end_processes *processes,
		     const uint32_t *secret, struct record_news *ret_news);

#endif
