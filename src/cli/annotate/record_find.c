/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_index.h"

#include <errno.h>

/*
 * The tuples on one side of a tuple: before all NAT, or after it. Records may name adjacent tuples,
 * or ones that are farther away: a flow and the mappings of two routers on its way, say.
 */
struct side {
	int side;
	struct face_set known; /* the first one is where the search began */
	bool is_visited[FACE_SET_MAX];
	bool has_next[FACE_SET_MAX]; /* for each visited tuple */
};

/*
 * Addresses before or behind another NAT may be those of several conversations: they are if
 * something else than this one is on the way back.
 */
static bool is_shared(const struct side *side, const struct face_facts *facts)
{
	const struct face_set *back = &facts->beside[!side->side];

	for (int i = 0; i < back->n; i++)
		if (!face_set_has(&side->known, &back->faces[i]))
			return true;
	return facts->is_contradicted || facts->is_torn || back->is_full;
}

/* Other processes than those that are known there, or some where none were known. */
static void add_ends(struct conversation_facts *facts,
		     const struct face_facts *more)
{
	for (int end = 0; end < 2; end++) {
		const struct end_process *process = more->ends[end];

		facts->is_contradicted[end] |=
			more->has_ends[end] ||
			(process && facts->ends[end] &&
			 !end_process_is_same(process, facts->ends[end]));
		facts->ends[end] = facts->ends[end] ?: process;
	}
}

/* @return whether a tuple was visited */
static bool visit_next(const struct face_search *search, struct side *side,
		       struct conversation_facts *facts)
{
	for (int i = 1; i < side->known.n; i++) {
		const struct face_set *next;
		struct face_facts more;

		if (side->is_visited[i])
			continue;
		face_facts_find(search, &side->known.faces[i], &more);
		if (is_shared(side, &more))
			continue;
		next = &more.beside[side->side];
		side->is_visited[i] = true;
		side->has_next[i] = next->n;
		side->known.is_full |= next->is_full;
		for (int j = 0; j < next->n; j++)
			face_set_add(&side->known, &next->faces[j]);
		add_ends(facts, &more);
		return true;
	}
	return false;
}

/* @return 1: there is one last tuple; 0: none; -EEXIST: several */
static int find_last(const struct face_search *search, int which,
		     const struct flow_face *face, const struct face_facts *found,
		     struct conversation_facts *facts, struct flow_face *ret_last)
{
	struct side side = { .side = which, .known = found->beside[which] };
	int n = 0;

	if (!found->beside[which].n)
		return 0;
	side.known.n = 0;
	face_set_add(&side.known, face);
	for (int i = 0; i < found->beside[which].n; i++)
		face_set_add(&side.known, &found->beside[which].faces[i]);
	while (visit_next(search, &side, facts))
		;
	for (int i = 1; i < side.known.n; i++)
		if (!side.has_next[i]) {
			*ret_last = side.known.faces[i];
			n++;
		}
	return n == 1 && !side.known.is_full ? 1 : -EEXIST;
}

enum record_answer record_index_find(const struct record_index *index,
				     const struct flow_face *face,
				     struct flow_span span,
				     struct conversation_facts *ret_facts)
{
	const struct face_search search = {
		.index = index,
		.span = span,
		.wide = { span.start_ms - RECORD_SLACK_MS,
			  span.end_ms + RECORD_SLACK_MS },
	};
	struct conversation_facts facts = { 0 };
	struct face_facts found;
	int before, after;

	face_facts_find(&search, face, &found);
	if (!found.is_known)
		return RECORD_NONE;
	add_ends(&facts, &found);
	before = find_last(&search, 0, face, &found, &facts, &facts.before);
	after = find_last(&search, 1, face, &found, &facts, &facts.after);
	if (found.is_contradicted || found.is_torn || before < 0 || after < 0)
		return RECORD_AMBIGUOUS;
	facts.has_before = before;
	facts.has_after = after;
	facts.zone = found.zone;
	facts.id = found.has_ids ? 0 : found.id;
	for (int end = 0; end < 2; end++)
		if (facts.is_contradicted[end])
			facts.ends[end] = NULL;
	*ret_facts = facts;
	return RECORD_FOUND;
}
