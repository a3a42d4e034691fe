/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The table of a record index, for what adds to it and what searches it. */
#ifndef NETOBS_CLI_ANNOTATE_RECORD_TABLE_H
#define NETOBS_CLI_ANNOTATE_RECORD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "end_process.h"
#include "flow_face.h"
#include "record_news.h"

enum {
	LOOKS = 1 << 14, /* entries with a tuple that are checked, the newest first */
};

/* A tuple of an entry, in the list of all tuples with one hash. */
struct face_node {
	struct face_node *next;
	struct record_entry *entry;
	struct flow_face face;
};

/* The facts of records: members as in struct record_news. */
struct record_entry {
	struct record_entry *next;
	struct flow_span span;
	uint64_t id, zone, vni;
	uint64_t agent;
	const struct end_process *ends[2];
	uint8_t n_faces;
	bool is_open; /* a mapping that has not ended: it lasts as long as the records */
	struct face_node faces[]; /* in the order in which packets have them */
};

struct record_index {
	struct face_node **buckets;
	uint64_t n_buckets, n_faces, n_entries;
	struct record_entry *entries;
	struct end_processes processes;
	int64_t latest_ms; /* latest time of all records */
	uint32_t secret[NEWS_SECRET_WORDS];
};

_Static_assert(sizeof(struct flow_face) == NEWS_SECRET_WORDS * sizeof(uint32_t),
	       "one secret for both");

/* @return the head of the list that has the nodes of @face, of either direction */
struct face_node **record_index_bucket(const struct record_index *index,
				       const struct flow_face *face);

#endif
