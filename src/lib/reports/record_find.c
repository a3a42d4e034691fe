/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_index.h"

#include <errno.h>

#include "base/util.h"

/* ---- Face facts ------------------------------------------------------------------------ */

/* The facts that records state about a tuple, in its direction: its translations, and processes. */

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
	const struct netobs_annotator *index;
	struct flow_span span, wide; /* without, and with the slack */
};

static bool face_set_has(const struct face_set *set, const struct flow_face *face)
{
	for (int i = 0; i < set->n; i++)
		if (flow_face_equal(face, &set->faces[i]))
			return true;
	return false;
}

/* Unless it is there; without room, @set is full. */
static void face_set_add(struct face_set *set, const struct flow_face *face)
{
	if (face_set_has(set, face))
		return;
	if (set->n < FACE_SET_MAX)
		set->faces[set->n++] = *face;
	else
		set->is_full = true;
}

static struct flow_span span_of(const struct netobs_annotator *index,
				const struct record_entry *entry)
{
	struct flow_span span = entry->facts.span;

	if (entry->facts.is_open)
		span.end_ms = max_i64(index->latest_ms, span.end_ms);
	return span;
}

static bool is_in_time(const struct netobs_annotator *index,
		       const struct flow_span *span,
		       const struct record_entry *entry)
{
	const struct flow_span its = span_of(index, entry);

	return its.start_ms <= span->end_ms && its.end_ms >= span->start_ms;
}

static void add_beside(struct face_set *set, const struct record_entry *entry,
		       int at, bool is_back)
{
	struct flow_face face;

	if (at < 0 || at >= entry->facts.n_faces)
		return;
	face = is_back ? flow_face_back(&entry->faces[at].face) :
			 entry->faces[at].face;
	face_set_add(set, &face);
}

/* @return false: it is another one than is known */
static bool agree(uint64_t *known, uint64_t value)
{
	if (*known && value && *known != value)
		return false;
	*known = *known ?: value;
	return true;
}

/* A process that has executed another program is the same, by the newer name. */
static void add_end(struct face_facts *facts, int end,
		    const struct end_process *process, int64_t time_ms)
{
	if (!process)
		return;
	if (facts->ends[end] && !end_process_is_same(facts->ends[end], process))
		facts->has_ends[end] = true;
	if (!facts->ends[end] || time_ms >= facts->ends_ms[end]) {
		facts->ends[end] = process;
		facts->ends_ms[end] = time_ms;
	}
}

/*
 * Agents that see a conversation on different sides of another one's NAT have different ids for it. Of
 * one agent, several ids are several conversations.
 */
static void add_id(struct face_facts *facts, const struct record_facts *stated)
{
	if (!stated->id)
		return;
	facts->has_ids |= !agree(&facts->id, stated->id);
	for (int i = 0; i < FACE_AGENTS_MAX; i++) {
		if (facts->ids[i].id && facts->ids[i].agent != stated->agent)
			continue;
		facts->is_torn |= facts->ids[i].id &&
				  facts->ids[i].id != stated->id;
		facts->ids[i].agent = stated->agent;
		facts->ids[i].id = stated->id;
		return;
	}
	facts->is_torn = true;
}

static void add_facts(struct face_facts *facts, const struct face_node *node,
		      bool is_back)
{
	const struct record_entry *entry = node->entry;
	const struct record_facts *stated = &entry->facts;
	const int at = (int)(node - entry->faces);

	facts->is_known = true;
	add_beside(&facts->beside[is_back], entry, at - 1, is_back);
	add_beside(&facts->beside[!is_back], entry, at + 1, is_back);
	facts->is_contradicted |= !agree(&facts->zone, stated->zone) ||
				  !agree(&facts->vni, stated->vni);
	add_id(facts, stated);
	for (int end = 0; end < 2; end++)
		add_end(facts, end, stated->ends[is_back ? !end : end],
			stated->span.end_ms);
}

/*
 * The time of the conversations that are there without the slack: a mapping may be, and the flow of the
 * same packet, which has the process, only a millisecond later.
 */
static struct flow_span exact_span(const struct face_search *search,
				   const struct flow_face *face)
{
	const struct face_node *node = record_index_nodes(search->index, face);
	struct flow_span exact = search->span;

	for (int n = 0; node && n < LOOKS; n++, node = node->next) {
		const struct flow_span span = span_of(search->index, node->entry);

		if (!is_in_time(search->index, &search->span, node->entry))
			continue;
		exact.start_ms = min_i64(exact.start_ms, span.start_ms);
		exact.end_ms = max_i64(exact.end_ms, span.end_ms);
	}
	return exact;
}

/* @exact: those that are there without the slack, or at the same time as such a one within it */
static void collect_facts(const struct face_search *search,
			  const struct flow_face *face,
			  struct face_facts *exact, struct face_facts *all)
{
	const struct flow_span span = exact_span(search, face);
	const struct face_node *node = record_index_nodes(search->index, face);
	int n = 0;

	for (; node && n < LOOKS; n++, node = node->next) {
		const bool is_back = !flow_face_equal(&node->face, face);

		if (!is_in_time(search->index, &search->wide, node->entry))
			continue;
		add_facts(all, node, is_back);
		if (is_in_time(search->index, &span, node->entry))
			add_facts(exact, node, is_back);
	}
	/* LOOKS entries were checked: those left may contradict them. */
	all->is_torn |= n == LOOKS;
}

/*
 * Clocks seldom differ by all of the slack: entries found without it are preferred. But if there
 * are several conversations within it, none is chosen.
 */
static void face_facts_find(const struct face_search *search,
			    const struct flow_face *face,
			    struct face_facts *ret_facts)
{
	struct face_facts exact = { 0 }, all = { 0 };

	collect_facts(search, face, &exact, &all);
	*ret_facts = exact.is_known ? exact : all;
	ret_facts->is_contradicted = all.is_contradicted;
	ret_facts->has_ids = all.has_ids;
	ret_facts->is_torn = all.is_torn && (all.beside[0].n || all.beside[1].n);
	for (int end = 0; end < 2; end++)
		ret_facts->has_ends[end] = all.has_ends[end];
}

/* ---- Conversations --------------------------------------------------------------------- */

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

/* Add the processes of @more; one that differs from the known process of its end contradicts it. */
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

enum record_answer record_index_find(const struct netobs_annotator *index,
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
