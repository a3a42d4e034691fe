/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <netobs/annotate.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <netobs/flow.h>

#include "base/text.h"
#include "record_index.h"

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
