/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"

enum {
	BUCKETS_FIRST = 1024,
	MERGE_LOOKS = 8, /* entries that a record is compared with, to be merged */
	MERGE_GAP_MS = 1000, /* between records of a flow that share an entry */
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
	end_processes_done(&index->processes);
	free(index->buckets);
	free(index);
}

uint64_t record_index_count(const struct record_index *index)
{
	return index->n_entries;
}

/* ---- The table ----------------------------------------------------------------------- */

/* The hash is equal for both directions of a flow. */
static uint64_t hash_face(const struct record_index *index,
			  const struct flow_face *face)
{
	const struct flow_face back = flow_face_back(face);
	const struct flow_face *first =
		memcmp(face, &back, sizeof(back)) < 0 ? face : &back;

	return hash_bytes(first, sizeof(*first), index->secret);
}

struct face_node **record_index_bucket(const struct record_index *index,
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
				record_index_bucket(index, &node->face);

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
		bucket = record_index_bucket(index, &node->face);
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

/* The end of a mapping, or one that is listed again, by the same service, which was started anew. */
static bool merge_mapping(struct face_node *node, const struct record_news *news)
{
	for (int i = 0; node && i < LOOKS; i++, node = node->next) {
		struct record_entry *entry = node->entry;

		if (!entry->is_open || entry->agent != news->agent ||
		    !has_faces(entry, news))
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
	struct face_node *node = *record_index_bucket(index, &news->faces[0]);

	if ((news->is_open || news->is_end) && merge_mapping(node, news))
		return true;
	for (int i = 0; node && i < MERGE_LOOKS; i++, node = node->next)
		if (can_merge(node->entry, news)) {
			widen_span(&node->entry->span, &news->span);
			return true;
		}
	return false;
}

int record_index_add(struct record_index *index, struct json_value record)
{
	struct record_news news;
	int r = record_news_read(record, &index->processes, index->secret, &news);

	if (r <= 0)
		return r;
	index->latest_ms = max_i64(index->latest_ms, news.span.end_ms);
	return merge_record(index, &news) ? 0 : add_entry(index, &news);
}
