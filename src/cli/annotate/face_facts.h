/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The facts that records state about a tuple, in its direction: its translations, and processes. */
#ifndef NETOBS_CLI_ANNOTATE_FACE_FACTS_H
#define NETOBS_CLI_ANNOTATE_FACE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "record_index.h"

enum {
	FACE_SET_MAX = 8, /* tuples of a conversation on one side of a tuple */
	FACE_AGENTS_MAX = 4, /* agents that have an id for a tuple */
};

/* Faces that differ. */
struct face_set {
	struct flow_face faces[FACE_SET_MAX];
	int n;
	bool is_full; /* there were more */
};

/* The facts of all entries with a tuple, in its direction. */
struct face_facts {
	bool is_known;
	bool is_contradicted; /* certainly one of several conversations */
	struct face_set beside[2]; /* before NAT, after it: directly, or farther away */
	uint64_t id, zone, vni;
	bool has_ids; /* several */
	bool is_torn; /* an agent reported several */
	struct {
		uint64_t agent, id;
	} ids[FACE_AGENTS_MAX]; /* no id: no more */
	const struct end_process *ends[2];
	int64_t ends_ms[2]; /* time of the newest entry with the process */
	bool has_ends[2];   /* several */
};

struct face_search {
	const struct record_index *index;
	struct flow_span span, wide; /* without, and with the slack */
};

bool face_set_has(const struct face_set *set, const struct flow_face *face);

/* Unless it is there; without room, @set is full. */
void face_set_add(struct face_set *set, const struct flow_face *face);

/*
 * Clocks seldom differ by all of the slack: entries found without it are preferred. But if there
 * are several conversations within it, none is chosen.
 */
void face_facts_find(const struct face_search *search,
		     const struct flow_face *face, struct face_facts *ret_facts);

#endif
