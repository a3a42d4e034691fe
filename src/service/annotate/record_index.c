/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"

enum {
	FACES_MAX = 3, /* of a flow that two NATs of the host translate */
	BUCKETS_FIRST = 1024,
	PROCESS_BUCKETS = 4096,
	MERGE_LOOKS = 8, /* entries that a record is compared with, to be merged */
	MERGE_GAP_MS = 1000, /* between records of a flow that share an entry */
	SIDE_MAX = 8, /* faces of a conversation on one side of another one */
	MEMBERS_MAX = 1024,
	LOOKS = 1 << 14, /* at entries with a face, from that which came last on */
	AGENTS_MAX = 4, /* that have an id for a face */
};

/* A face of an entry, in the list of all faces with one hash. */
struct face_node {
	struct face_node *next;
	struct record_entry *entry;
	struct flow_face face;
};

/* What records said. */
struct record_entry {
	struct record_entry *next;
	struct flow_span span;
	uint64_t id, zone, vni; /* the latter two plus 1; 0: not known */
	uint64_t agent;		/* a hash */
	const struct end_process *ends[2];
	uint8_t n_faces;
	bool is_open; /* a mapping that has not ended: it lasts as long as the records */
	struct face_node faces[]; /* as packets have them, one after the other */
};

struct record_index {
	struct face_node **buckets;
	uint64_t n_buckets, n_faces, n_entries;
	struct record_entry *entries;
	struct end_process *processes[PROCESS_BUCKETS];
	int64_t latest_ms; /* of all records */
	uint32_t secret[sizeof(struct flow_face) / sizeof(uint32_t)];
};

/* What a record says, until it is an entry. */
struct record_news {
	struct flow_face faces[FACES_MAX];
	uint8_t n_faces;
	struct flow_span span;
	uint64_t id, zone, vni, agent;
	const struct end_process *ends[2];
	bool is_open, is_end; /* of a mapping */
};

struct record_index *record_index_new(void)
{
	struct record_index *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	index->n_buckets = BUCKETS_FIRST;
	index->buckets = calloc(BUCKETS_FIRST, sizeof(struct face_node *));
	if (!index->buckets) {
		free(index);
		return NULL;
	}
	secret_fill(index->secret, sizeof(index->secret));
	return index;
}

void record_index_free(struct record_index *index)
{
	if (!index)
		return;
	while (index->entries) {
		struct record_entry *entry = index->entries;

		index->entries = entry->next;
		free(entry);
	}
	for (size_t i = 0; i < PROCESS_BUCKETS; i++)
		while (index->processes[i]) {
			struct end_process *process = index->processes[i];

			index->processes[i] = process->next;
			free(process->members[0]);
			free(process->members[1]);
			free(process);
		}
	free(index->buckets);
	free(index);
}

uint64_t record_index_count(const struct record_index *index)
{
	return index->n_entries;
}

/* ---- The table ----------------------------------------------------------------------- */

/* The same for both directions. */
static uint64_t hash_face(const struct record_index *index,
			  const struct flow_face *face)
{
	const struct flow_face back = flow_face_back(face);
	const struct flow_face *first =
		memcmp(face, &back, sizeof(back)) < 0 ? face : &back;

	return hash_bytes(first, sizeof(*first), index->secret);
}

static struct face_node **find_bucket(const struct record_index *index,
				      const struct flow_face *face)
{
	return &index->buckets[hash_face(index, face) & (index->n_buckets - 1)];
}

static int grow_table(struct record_index *index)
{
	struct face_node **old = index->buckets;
	const uint64_t n = index->n_buckets;

	if (index->n_faces < n)
		return 0;
	index->buckets = calloc(2 * n, sizeof(*old));
	if (!index->buckets) {
		index->buckets = old;
		return -ENOMEM;
	}
	index->n_buckets = 2 * n;
	for (uint64_t i = 0; i < n; i++)
		for (struct face_node *node = old[i], *next; node; node = next) {
			struct face_node **bucket =
				find_bucket(index, &node->face);

			next = node->next;
			node->next = *bucket;
			*bucket = node;
		}
	free(old);
	return 0;
}

static int add_entry(struct record_index *index, const struct record_news *news)
{
	struct record_entry *entry = calloc(
		1, sizeof(*entry) + news->n_faces * sizeof(entry->faces[0]));

	if (!entry || grow_table(index)) {
		free(entry);
		return -ENOMEM;
	}
	entry->span = news->span;
	entry->id = news->id;
	entry->zone = news->zone;
	entry->vni = news->vni;
	entry->agent = news->agent;
	memcpy(entry->ends, news->ends, sizeof(entry->ends));
	entry->is_open = news->is_open;
	entry->n_faces = news->n_faces;
	for (uint8_t i = 0; i < news->n_faces; i++) {
		struct face_node *node = &entry->faces[i];
		struct face_node **bucket;

		node->face = news->faces[i];
		node->entry = entry;
		bucket = find_bucket(index, &node->face);
		node->next = *bucket;
		*bucket = node;
		index->n_faces++;
	}
	entry->next = index->entries;
	index->entries = entry;
	index->n_entries++;
	return 0;
}

/* ---- Merging ------------------------------------------------------------------------- */

static bool has_faces(const struct record_entry *entry,
		      const struct record_news *news)
{
	if (entry->n_faces != news->n_faces || entry->zone != news->zone)
		return false;
	for (uint8_t i = 0; i < news->n_faces; i++)
		if (!flow_face_equal(&entry->faces[i].face, &news->faces[i]))
			return false;
	return true;
}

/* @return whether the entry can have the record as well, and say the same */
static bool can_merge(const struct record_entry *entry,
		      const struct record_news *news)
{
	return has_faces(entry, news) && !entry->is_open && !news->is_open &&
	       entry->id == news->id && entry->vni == news->vni &&
	       entry->agent == news->agent && entry->ends[0] == news->ends[0] &&
	       entry->ends[1] == news->ends[1] &&
	       news->span.start_ms <= entry->span.end_ms + MERGE_GAP_MS &&
	       news->span.end_ms >= entry->span.start_ms - MERGE_GAP_MS;
}

static void widen_span(struct flow_span *span, const struct flow_span *more)
{
	if (more->start_ms < span->start_ms)
		span->start_ms = more->start_ms;
	span->end_ms = max_i64(span->end_ms, more->end_ms);
}

/* The end of a mapping, or one that is listed again, by a service that was started anew. */
static bool merge_mapping(struct face_node *node, const struct record_news *news)
{
	for (int i = 0; node && i < LOOKS; i++, node = node->next) {
		struct record_entry *entry = node->entry;

		if (!entry->is_open || !has_faces(entry, news))
			continue;
		widen_span(&entry->span, &news->span);
		entry->is_open = news->is_open;
		return true;
	}
	return false;
}

static bool merge_record(struct record_index *index,
			 const struct record_news *news)
{
	struct face_node *node = *find_bucket(index, &news->faces[0]);

	if ((news->is_open || news->is_end) && merge_mapping(node, news))
		return true;
	for (int i = 0; node && i < MERGE_LOOKS; i++, node = node->next)
		if (can_merge(node->entry, news)) {
			widen_span(&node->entry->span, &news->span);
			return true;
		}
	return false;
}

/* ---- Reading ------------------------------------------------------------------------- */

static const char *const process_keys[] = {
#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, key, ...) key,
#include "catalogue/fields.def"
};

/* Members of the process in @record, with @from before their names there, and @to in @buf. */
static size_t copy_members(struct json_value record, const char *from,
			   const char *to, char buf[MEMBERS_MAX])
{
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(process_keys); i++) {
		char key[32];
		struct json_value value;
		int n;

		snprintf(key, sizeof(key), "%s%s", from, process_keys[i]);
		value = json_get(record, key);
		if (!value.at)
			continue;
		n = snprintf(buf + len, MEMBERS_MAX - len, ",\"%s%s\":%.*s", to,
			     process_keys[i], (int)json_length(value), value.at);
		if (n < 0 || (size_t)n >= MEMBERS_MAX - len)
			break;
		len += (size_t)n;
	}
	buf[len] = '\0';
	return len;
}

/* @prefix: of the process's members. @ret_process: untouched if there is none. @return 0; -ENOMEM */
static int find_process(struct record_index *index, struct json_value record,
			const char *prefix,
			const struct end_process **ret_process)
{
	char as_src[MEMBERS_MAX], as_dst[MEMBERS_MAX], key[16];
	struct end_process **bucket, *process;
	uint64_t pid;

	snprintf(key, sizeof(key), "%sPid", prefix);
	pid = json_number(json_get(record, key));
	if (!pid || !copy_members(record, prefix, "Src", as_src))
		return 0;
	bucket = &index->processes[pid % PROCESS_BUCKETS];
	for (process = *bucket; process; process = process->next)
		if (!strcmp(process->members[0], as_src)) {
			*ret_process = process;
			return 0;
		}
	copy_members(record, prefix, "Dst", as_dst);
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->next = *bucket;
	*bucket = process;
	process->pid = pid;
	process->members[0] = strdup(as_src);
	process->members[1] = strdup(as_dst);
	if (!process->members[0] || !process->members[1])
		return -ENOMEM;
	*ret_process = process;
	return 0;
}

static uint64_t read_id(struct json_value record)
{
	char text[24];

	json_get_text(record, "ConversationId", text, sizeof(text));
	return strtoull(text, NULL, 16);
}

/* @return 0: it is not known */
static uint64_t read_agent(const struct record_index *index,
			   struct json_value record)
{
	const struct json_value agent = json_get(record, "AgentIP");
	char text[sizeof(index->secret)] = "";

	json_text(agent, text, sizeof(text));
	return agent.at ? hash_bytes(text, sizeof(text), index->secret) : 0;
}

/* @return the number plus 1; 0: there is none */
static uint64_t read_optional(struct json_value record, const char *key)
{
	const struct json_value value = json_get(record, key);

	return value.at ? json_number(value) + 1 : 0;
}

static void add_face(struct record_news *news, struct json_value record,
		     const char *prefix)
{
	const struct flow_face *last = &news->faces[news->n_faces - 1];

	if (flow_face_read_other(record, prefix, last,
				 &news->faces[news->n_faces]))
		news->n_faces++;
}

static int read_flow(struct record_index *index, struct json_value record,
		     struct record_news *news)
{
	const struct flow_face face = news->faces[0];

	if (flow_face_read_other(record, "Orig", &face, &news->faces[0]))
		news->faces[news->n_faces++] = face;
	add_face(news, record, "Xlat");
	news->vni = read_optional(record, "Vni");
	return find_process(index, record, "Src", &news->ends[0]) ?:
		       find_process(index, record, "Dst", &news->ends[1]);
}

static int read_session(struct record_index *index, struct json_value record,
			struct record_news *news)
{
	return find_process(index, record, "", &news->ends[0]);
}

/* One whose beginning is not known began at the latest when it was first known. */
static int read_mapping(struct record_index *index, struct json_value record,
			struct record_news *news)
{
	const int64_t asked_ms = flow_time_read(json_get(record, "TimeMs"));
	const int64_t ended_ms = flow_time_read(json_get(record, "EndedMs"));
	const struct json_value last = json_get(record, "TimeFlowEndMs");
	char state[16], event[16];

	(void)index;
	json_get_text(record, "State", state, sizeof(state));
	json_get_text(record, "Event", event, sizeof(event));
	news->is_open = !strcmp(event, "begin");
	news->is_end = !strcmp(event, "end");
	if (!strcmp(state, "active"))
		news->span.end_ms = asked_ms;
	else if (!last.at && ended_ms)
		news->span.end_ms = ended_ms;
	add_face(news, record, "Xlat");
	return 0;
}

static const struct {
	const char *type;
	int (*read)(struct record_index *index, struct json_value record,
		    struct record_news *news);
} types[] = {
	{ "", read_flow }, /* of agents that have one type only */
	{ "flow", read_flow },
	{ "mapping", read_mapping },
	{ "session", read_session },
};

int record_index_add(struct record_index *index, struct json_value record)
{
	struct record_news news = { .n_faces = 1 };
	char type[16];
	int r = -ENOENT;

	json_get_text(record, "type", type, sizeof(type));
	if (!flow_face_read(record, &news.faces[0], &news.span) ||
	    !news.span.end_ms)
		return 0;
	news.id = read_id(record);
	news.agent = read_agent(index, record);
	news.zone = read_optional(record, "ZoneId");
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(type, types[i].type))
			r = types[i].read(index, record, &news);
	if (r)
		return r == -ENOENT ? 0 : r;
	index->latest_ms = max_i64(index->latest_ms, news.span.end_ms);
	return merge_record(index, &news) ? 0 : add_entry(index, &news);
}

/* ---- What is known of a face --------------------------------------------------------- */

/* Faces that differ. */
struct face_set {
	struct flow_face faces[SIDE_MAX];
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
	} ids[AGENTS_MAX]; /* no id: no more */
	const struct end_process *ends[2];
	int64_t ends_ms[2]; /* of the newest entry that has it */
	bool has_ends[2];   /* several */
};

struct search {
	const struct record_index *index;
	struct flow_span span, wide; /* with the slack */
};

static bool set_has(const struct face_set *set, const struct flow_face *face)
{
	for (int i = 0; i < set->n; i++)
		if (flow_face_equal(face, &set->faces[i]))
			return true;
	return false;
}

static void set_add(struct face_set *set, const struct flow_face *face)
{
	if (set_has(set, face))
		return;
	if (set->n < SIDE_MAX)
		set->faces[set->n++] = *face;
	else
		set->is_full = true;
}

static struct flow_span span_of(const struct record_index *index,
				const struct record_entry *entry)
{
	struct flow_span span = entry->span;

	if (entry->is_open)
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

	if (at < 0 || at >= entry->n_faces)
		return;
	face = is_back ? flow_face_back(&entry->faces[at].face) :
			 entry->faces[at].face;
	set_add(set, &face);
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
	if (facts->ends[end] && facts->ends[end]->pid != process->pid)
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
static void add_id(struct face_facts *facts, const struct record_entry *entry)
{
	if (!entry->id)
		return;
	facts->has_ids |= !agree(&facts->id, entry->id);
	for (int i = 0; i < AGENTS_MAX; i++) {
		if (facts->ids[i].id && facts->ids[i].agent != entry->agent)
			continue;
		facts->is_torn |= facts->ids[i].id &&
				  facts->ids[i].id != entry->id;
		facts->ids[i].agent = entry->agent;
		facts->ids[i].id = entry->id;
		return;
	}
	facts->is_torn = true;
}

static void add_facts(struct face_facts *facts, const struct face_node *node,
		      bool is_back)
{
	const struct record_entry *entry = node->entry;
	const int at = (int)(node - entry->faces);

	facts->is_known = true;
	add_beside(&facts->beside[is_back], entry, at - 1, is_back);
	add_beside(&facts->beside[!is_back], entry, at + 1, is_back);
	facts->is_contradicted |= !agree(&facts->zone, entry->zone) ||
				  !agree(&facts->vni, entry->vni);
	add_id(facts, entry);
	for (int end = 0; end < 2; end++)
		add_end(facts, end, entry->ends[is_back ? !end : end],
			entry->span.end_ms);
}

/*
 * The time of the conversations that are there without the slack: a mapping may be, and the flow of the
 * same packet, which has the process, only a millisecond later.
 */
static struct flow_span exact_span(const struct search *search,
				   const struct flow_face *face)
{
	const struct flow_face back = flow_face_back(face);
	const struct face_node *node = *find_bucket(search->index, face);
	struct flow_span exact = search->span;

	for (int n = 0; node && n < LOOKS; n++, node = node->next) {
		const struct flow_span span = span_of(search->index, node->entry);

		if (!is_in_time(search->index, &search->span, node->entry) ||
		    (!flow_face_equal(&node->face, face) &&
		     !flow_face_equal(&node->face, &back)))
			continue;
		exact.start_ms = min_i64(exact.start_ms, span.start_ms);
		exact.end_ms = max_i64(exact.end_ms, span.end_ms);
	}
	return exact;
}

/* @exact: those that are there without the slack, or at the same time as such a one within it */
static void collect_facts(const struct search *search,
			  const struct flow_face *face,
			  struct face_facts *exact, struct face_facts *all)
{
	const struct flow_face back = flow_face_back(face);
	const struct flow_span span = exact_span(search, face);
	const struct face_node *node = *find_bucket(search->index, face);
	int n = 0;

	for (; node && n < LOOKS; n++, node = node->next) {
		const bool is_back = flow_face_equal(&node->face, &back);

		if ((!is_back && !flow_face_equal(&node->face, face)) ||
		    !is_in_time(search->index, &search->wide, node->entry))
			continue;
		add_facts(all, node, is_back);
		if (is_in_time(search->index, &span, node->entry))
			add_facts(exact, node, is_back);
	}
	/* Of so many, the others may say something else. */
	all->is_torn |= n == LOOKS;
}

/*
 * Clocks seldom differ by all of the slack: what is there without it says what the face is. But of several
 * conversations within it, none is taken for another one.
 */
static void look_at_face(const struct search *search,
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

/* ---- Finding ------------------------------------------------------------------------- */

/*
 * The faces on one side of a face: before all NAT, or after it. Records may name those beside it,
 * or ones that are farther away: a flow and the mappings of two routers on its way, say.
 */
struct side {
	int side;
	struct face_set known; /* the first one is where the search began */
	bool is_visited[SIDE_MAX];
	bool has_next[SIDE_MAX]; /* of those that were visited */
};

/*
 * Addresses before or behind another NAT may be those of several conversations: they are if
 * something else than this one is on the way back.
 */
static bool is_shared(const struct side *side, const struct face_facts *facts)
{
	const struct face_set *back = &facts->beside[!side->side];

	for (int i = 0; i < back->n; i++)
		if (!set_has(&side->known, &back->faces[i]))
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
			 process->pid != facts->ends[end]->pid);
		facts->ends[end] = facts->ends[end] ?: process;
	}
}

/* @return whether a face was visited */
static bool visit_next(const struct search *search, struct side *side,
		       struct conversation_facts *facts)
{
	for (int i = 1; i < side->known.n; i++) {
		const struct face_set *next;
		struct face_facts more;

		if (side->is_visited[i])
			continue;
		look_at_face(search, &side->known.faces[i], &more);
		if (is_shared(side, &more))
			continue;
		next = &more.beside[side->side];
		side->is_visited[i] = true;
		side->has_next[i] = next->n;
		side->known.is_full |= next->is_full;
		for (int j = 0; j < next->n; j++)
			set_add(&side->known, &next->faces[j]);
		add_ends(facts, &more);
		return true;
	}
	return false;
}

/* @return 1: there is a last face; 0: none; -EEXIST: there are several */
static int find_last(const struct search *search, int which,
		     const struct flow_face *face, const struct face_facts *found,
		     struct conversation_facts *facts, struct flow_face *ret_last)
{
	struct side side = { .side = which, .known = found->beside[which] };
	int n = 0;

	if (!found->beside[which].n)
		return 0;
	side.known.n = 0;
	set_add(&side.known, face);
	for (int i = 0; i < found->beside[which].n; i++)
		set_add(&side.known, &found->beside[which].faces[i]);
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
				     struct flow_span span, int64_t slack_ms,
				     struct conversation_facts *ret_facts)
{
	const struct search search = {
		.index = index,
		.span = span,
		.wide = { span.start_ms - slack_ms, span.end_ms + slack_ms },
	};
	struct conversation_facts facts = { 0 };
	struct face_facts found;
	int before, after;

	look_at_face(&search, face, &found);
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
