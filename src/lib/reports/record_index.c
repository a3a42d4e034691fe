/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_index.h"

#include "base/text.h"
#include "base/util.h"

#include <errno.h>
#include <inttypes.h>
#include <netobs/annotate.h>
#include <netobs/flow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MERGE_LOOKS = 8, /* entries that a record is compared with, to be merged */
	MERGE_GAP_MS = 1000, /* between records of a flow that share an entry */
};

/* The nodes of a tuple, the newest first. */
struct face_list {
	struct flow_face face;
	struct face_node *first;
};

int netobs_annotator_new(struct netobs_annotator **ret_annotator)
{
	struct netobs_annotator *index;

	if (!ret_annotator)
		return -EINVAL;
	index = calloc(1, sizeof(*index));
	if (!index)
		return -ENOMEM;
	*ret_annotator = index;
	return 0;
}

void netobs_annotator_free(struct netobs_annotator *index)
{
	if (!index)
		return;
	while (index->entries) {
		struct record_entry *entry = index->entries;

		index->entries = entry->next;
		free(entry);
	}
	end_processes_done(&index->processes);
	slots_free(&index->faces);
	free(index);
}

/* ---- The table ----------------------------------------------------------------------- */

/* Both directions have one list. */
static struct flow_face key_of(const struct flow_face *face)
{
	const struct flow_face back = flow_face_back(face);

	return memcmp(face, &back, sizeof(back)) < 0 ? *face : back;
}

struct face_node *record_index_nodes(const struct netobs_annotator *index,
				     const struct flow_face *face)
{
	const struct flow_face key = key_of(face);
	const uint32_t i = slots_find(&index->faces, &key);

	return i == SLOT_NONE ?
		       NULL :
		       ((struct face_list *)slots_at(&index->faces, i))->first;
}

/* Without memory, an entry that has none of its tuples in the table is found by none. */
static int add_entry(struct netobs_annotator *index,
		     const struct record_news *news)
{
	const uint8_t n = news->facts.n_faces;
	struct record_entry *entry =
		calloc(1, sizeof(*entry) + n * sizeof(entry->faces[0]));

	if (!entry)
		return -ENOMEM;
	entry->next = index->entries;
	index->entries = entry;
	entry->facts = news->facts;
	for (uint8_t i = 0; i < n; i++) {
		struct face_node *node = &entry->faces[i];
		const struct flow_face key = key_of(&news->faces[i]);
		const uint32_t at = slots_get(&index->faces, &key, sizeof(key),
					      sizeof(struct face_list));
		struct face_list *list;

		if (at == SLOT_NONE)
			return -ENOMEM;
		list = slots_at(&index->faces, at);
		*node = (struct face_node){ .next = list->first,
					    .entry = entry,
					    .face = news->faces[i] };
		list->first = node;
	}
	index->n_entries++;
	return 0;
}

/* ---- Merging ------------------------------------------------------------------------- */

static bool has_faces(const struct record_entry *entry,
		      const struct record_news *news)
{
	if (entry->facts.n_faces != news->facts.n_faces ||
	    entry->facts.zone != news->facts.zone)
		return false;
	for (uint8_t i = 0; i < news->facts.n_faces; i++)
		if (!flow_face_equal(&entry->faces[i].face, &news->faces[i]))
			return false;
	return true;
}

/* @return whether the entry can have the record as well, and say the same */
static bool can_merge(const struct record_entry *entry,
		      const struct record_news *news)
{
	const struct record_facts *one = &entry->facts, *more = &news->facts;

	return has_faces(entry, news) && !one->is_open && !more->is_open &&
	       one->id == more->id && one->vni == more->vni &&
	       one->agent == more->agent && one->ends[0] == more->ends[0] &&
	       one->ends[1] == more->ends[1] &&
	       more->span.start_ms <= one->span.end_ms + MERGE_GAP_MS &&
	       more->span.end_ms >= one->span.start_ms - MERGE_GAP_MS;
}

static void widen_span(struct flow_span *span, const struct flow_span *more)
{
	if (more->start_ms < span->start_ms)
		span->start_ms = more->start_ms;
	span->end_ms = max_i64(span->end_ms, more->end_ms);
}

/* The end of a mapping, or one that is listed again, by the same service, which was started anew. */
static bool merge_mapping(struct face_node *node, const struct record_news *news)
{
	for (int i = 0; node && i < LOOKS; i++, node = node->next) {
		struct record_entry *entry = node->entry;

		if (!entry->facts.is_open ||
		    entry->facts.agent != news->facts.agent ||
		    !has_faces(entry, news))
			continue;
		widen_span(&entry->facts.span, &news->facts.span);
		entry->facts.is_open = news->facts.is_open;
		return true;
	}
	return false;
}

static bool merge_record(struct netobs_annotator *index,
			 const struct record_news *news)
{
	struct face_node *node = record_index_nodes(index, &news->faces[0]);

	if ((news->facts.is_open || news->is_end) && merge_mapping(node, news))
		return true;
	for (int i = 0; node && i < MERGE_LOOKS; i++, node = node->next)
		if (can_merge(node->entry, news)) {
			widen_span(&node->entry->facts.span, &news->facts.span);
			return true;
		}
	return false;
}

int record_index_add(struct netobs_annotator *index, struct json_value record)
{
	struct record_news news;
	int r = record_news_read(record, &index->processes, &news);

	if (r <= 0)
		return r;
	index->latest_ms = max_i64(index->latest_ms, news.facts.span.end_ms);
	return merge_record(index, &news) ? 0 : add_entry(index, &news);
}

/* ---- Annotations --------------------------------------------------------------------- */

/* Members are appended to @text; what does not fit shows in its length. */
struct members {
	struct json_value record; /* whose members are left as they are */
	char *text;
	size_t size;
};

static bool has_member(const struct members *members, const char *prefix,
		       const char *name)
{
	char key[32];

	snprintf(key, sizeof(key), "%s%s", prefix, name);
	return json_get(members->record, key).at;
}

static void add_address(const struct members *members, const char *prefix,
			const char *name, const uint8_t ip[16])
{
	char text[NETOBS_ADDR_STR_MAX + TEXT_SPARE];

	*text_ip(text, ip) = '\0';
	text_append(members->text, members->size, ",\"%s%s\":\"%s\"", prefix,
		    name, text);
}

static void add_face(const struct members *members, const char *prefix,
		     const struct flow_face *face)
{
	if (has_member(members, prefix, "SrcAddr"))
		return;
	add_address(members, prefix, "SrcAddr", face->src);
	add_address(members, prefix, "DstAddr", face->dst);
	if (face->src_port || face->dst_port)
		text_append(members->text, members->size,
			    ",\"%sSrcPort\":%u,\"%sDstPort\":%u", prefix,
			    face->src_port, prefix, face->dst_port);
}

static void add_numbers(const struct members *members,
			const struct conversation_facts *facts)
{
	if (facts->zone && !has_member(members, "", "ZoneId") &&
	    (facts->has_before || facts->has_after))
		text_append(members->text, members->size,
			    ",\"ZoneId\":%" PRIu64, facts->zone - 1);
	if (facts->id && !has_member(members, "", "ConversationId"))
		text_append(members->text, members->size,
			    ",\"ConversationId\":\"%016" PRIx64 "\"", facts->id);
}

static void add_process(const struct members *members, int end,
			const struct conversation_facts *facts)
{
	const char *prefix = end ? "Dst" : "Src";

	if (facts->ends[end] && !has_member(members, prefix, "Pid") &&
	    !has_member(members, prefix, "Process"))
		text_append(members->text, members->size, "%s",
			    facts->ends[end]->members[end]);
}

static void add_members(const struct members *members,
			const struct conversation_facts *facts)
{
	if (facts->has_before)
		add_face(members, "Orig", &facts->before);
	if (facts->has_after)
		add_face(members, "Xlat", &facts->after);
	add_numbers(members, facts);
	add_process(members, 0, facts);
	add_process(members, 1, facts);
}

/* ---- The API --------------------------------------------------------------------------- */

int netobs_annotator_add(struct netobs_annotator *annotator, const char *json)
{
	const struct json_value record = json ? json_parse(json) :
						(struct json_value){ 0 };

	return annotator && record.at && *record.at == '{' ?
		       record_index_add(annotator, record) :
		       -EINVAL;
}

int netobs_annotator_find(const struct netobs_annotator *annotator,
			  const char *json, char *ret_members, size_t size)
{
	char text[NETOBS_ANNOTATION_MAX] = "";
	const struct members members = { json ? json_parse(json) :
						(struct json_value){ 0 },
					 text, sizeof(text) };
	struct conversation_facts facts = { 0 };
	enum record_answer answer = RECORD_NONE;
	struct flow_span span = { 0 };
	struct flow_face face;
	size_t len;

	if (!annotator || !ret_members || !size || !members.record.at ||
	    !layout_read(members.record, &face, &span))
		return -EINVAL;
	*ret_members = '\0';
	if (span.end_ms)
		answer = record_index_find(annotator, &face, span, &facts);
	if (answer == RECORD_FOUND)
		add_members(&members, &facts);
	len = strlen(text);
	if (len >= size)
		return -ENOBUFS;
	memcpy(ret_members, text, len + 1);
	return !len && (answer == RECORD_AMBIGUOUS ||
			facts.is_contradicted[0] || facts.is_contradicted[1]) ?
		       -ENOTUNIQ :
		       (int)len;
}
