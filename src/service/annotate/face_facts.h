/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the records of a face say, in its direction: what packets had before and behind it, and whose they were. */
#ifndef NETOBS_SERVICE_ANNOTATE_FACE_FACTS_H
#define NETOBS_SERVICE_ANNOTATE_FACE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "record_index.h"

enum {
	FACE_SET_MAX = 8, /* faces of a conversation on one side of another one */
	FACE_AGENTS_MAX = 4, /* that have an id for a face */
};

/* Faces that differ. */
struct face_set {
	struct flow_face faces[FACE_SET_MAX];
	int n;
	bool is_full; /* there were more */
};

/* What the entries of a face say, in its direction. */
struct face_facts {
	bool is_known;
	bool is_contradicted; /* it is one of several conversations in any case */
	struct face_set beside[2]; /* before NAT, after it: directly, or farther away */
	uint64_t id, zone, vni;
	bool has_ids; /* several */
	bool is_torn; /* one agent has several */
	struct {
		uint64_t agent, id;
	} ids[FACE_AGENTS_MAX]; /* no id: no more */
	const struct end_process *ends[2];
	int64_t ends_ms[2]; /* of the newest entry that has it */
	bool has_ends[2];   /* several */
};

struct face_search {
	const struct record_index *index;
	struct flow_span span, wide; /* with the slack */
};

bool face_set_has(const struct face_set *set, const struct flow_face *face);

/* Unless it is there; without room, @set is full. */
void face_set_add(struct face_set *set, const struct flow_face *face);

/*
 * Clocks seldom differ by all of the slack: what is there without it says what the face is. But of several
 * conversations within it, none is taken for another one.
 */
void face_facts_find(const struct face_search *search,
		     const struct flow_face *face, struct face_facts *ret_facts);

#endif
