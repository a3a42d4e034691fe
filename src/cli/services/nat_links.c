/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "talks.h"

#include <stdlib.h>
#include <string.h>

#include "base/conversation.h"
#include "base/util.h"

enum {
	FIRST_CAPACITY = 64,
	NATS_MAX = 8, /* NATs in a chain */
};

static bool has_tuple(const void *array, uint32_t index, const void *key)
{
	const struct nat_link *list = array;

	return !memcmp(&list[index].behind, key, sizeof(list[index].behind));
}

static struct nat_link *find(struct nat_links *links, const struct pair *behind)
{
	const uint32_t index =
		slots_find(&links->slots,
			   slots_hash(&links->slots, behind, sizeof(*behind)),
			   has_tuple, links->list, behind);

	return index == SLOT_NONE ? NULL : &links->list[index];
}

static bool add(struct nat_links *links, const struct nat_link *link)
{
	const uint64_t hash =
		slots_hash(&links->slots, &link->behind, sizeof(link->behind));

	if (!array_reserve(&links->list, links->n, &links->capacity,
			   sizeof(*links->list), FIRST_CAPACITY) ||
	    !slots_add(&links->slots, hash, links->n))
		return false;
	links->list[links->n++] = *link;
	return true;
}

/* @return false: no memory */
static bool note_link(struct nat_links *links, const struct nat_link *link)
{
	struct nat_link *known = find(links, &link->behind);

	if (!memcmp(&link->behind, &link->before, sizeof(link->behind)))
		return true;
	if (!known)
		return add(links, link);
	known->is_counted |= link->is_counted;
	known->is_shared |= memcmp(&known->before, &link->before,
				   sizeof(known->before)) != 0;
	return true;
}

static uint64_t id_of(const struct service_report *report,
		      const struct flow_face *face)
{
	return conversation_id(&(struct conversation){
		.src = face->src,
		.dst = face->dst,
		.src_port = face->src_port,
		.dst_port = report->icmp ?: face->dst_port,
		.proto = face->proto,
	});
}

/* A mapping has its first addresses from before NAT; of flows, the id shows which ones are. */
static const struct flow_face *find_root(const struct service_report *report)
{
	if (!report->conversation_id)
		return &report->face;
	for (uint32_t i = 0; i < report->n_others; i++)
		if (id_of(report, &report->others[i]) == report->conversation_id)
			return &report->others[i];
	return &report->face;
}

bool nat_links_note(struct nat_links *links, const struct service_report *report,
		    struct flow_face *ret_root)
{
	const struct flow_face *root = find_root(report);
	struct nat_link link = { .is_counted = report->kind == REPORT_FLOW };
	uint8_t root_source, source;

	*ret_root = *root;
	if (!report->n_others ||
	    (!report->conversation_id && report->kind != REPORT_MAPPING))
		return true;
	link.before = pair_of(root, &root_source);
	link.behind = pair_of(&report->face, &source);
	link.is_swapped = source != root_source;
	if (!note_link(links, &link))
		return false;
	for (uint32_t i = 0; i < report->n_others; i++) {
		link.behind = pair_of(&report->others[i], &source);
		link.is_swapped = source != root_source;
		if (!note_link(links, &link))
			return false;
	}
	return true;
}

enum nat_answer nat_links_find(struct nat_links *links, const struct pair *pair,
			       struct pair *ret_before, bool *ret_is_swapped)
{
	const struct nat_link *link;
	enum nat_answer answer = NAT_NONE;

	*ret_before = *pair;
	*ret_is_swapped = false;
	for (int i = 0; i < NATS_MAX && (link = find(links, ret_before)); i++) {
		if (link->is_shared)
			return link->is_counted ? NAT_SHARED : NAT_NONE;
		*ret_before = link->before;
		*ret_is_swapped ^= link->is_swapped;
		answer = NAT_FOUND;
	}
	return answer;
}

void nat_links_free(struct nat_links *links)
{
	free(links->list);
	slots_free(&links->slots);
	*links = (struct nat_links){ 0 };
}
