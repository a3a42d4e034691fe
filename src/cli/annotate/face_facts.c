/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_index.h"

#include "base/util.h"

bool face_set_has(const struct face_set *set, const struct flow_face *face)
{
	for (int i = 0; i < set->n; i++)
		if (flow_face_equal(face, &set->faces[i]))
			return true;
	return false;
}

void face_set_add(struct face_set *set, const struct flow_face *face)
{
	if (face_set_has(set, face))
		return;
	if (set->n < FACE_SET_MAX)
		set->faces[set->n++] = *face;
	else
		set->is_full = true;
}

static struct flow_span span_of(const struct record_index *index,
				const struct record_entry *entry)
{
	struct flow_span span = entry->facts.span;

	if (entry->facts.is_open)
		span.end_ms = max_i64(index->latest_ms, span.end_ms);
	return span;
}

static bool is_in_time(const struct record_index *index,
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

void face_facts_find(const struct face_search *search,
		     const struct flow_face *face, struct face_facts *ret_facts)
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
