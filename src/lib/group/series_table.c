/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "series_state.h"

#include "base/conversation.h"
#include "base/hash.h"
#include "base/times.h"
#include "base/util.h"
#include "keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	TEXTS_MAX = NETOBS_GROUP_KEYS_MAX * NETOBS_GROUP_TEXT_MAX,
	/* Values per series, and further ones. */
	VALUES_EACH = 4,
	VALUES_MORE = 64,
	NO_SLOT = UINT32_MAX, /* marks a value that is to be removed */
};

/* Texts of all keys, one after another with their NULs. */
struct texts {
	char text[TEXTS_MAX];
	size_t len, at[NETOBS_GROUP_KEYS_MAX];
	uint64_t hash;
};

/* Bytes of the histograms of a slot, or of a value. */
static size_t times_size(const struct series_table *table)
{
	return series_times_count(table->histograms) *
	       sizeof(struct netobs_times);
}

static size_t series_value_size(const struct series_table *table)
{
	return sizeof(struct series_value) + table->keys->value_size +
	       times_size(table);
}

struct netobs_times *series_table_slot_times(const struct series_table *table,
					     const struct series_slot *slot)
{
	return table->times + (size_t)(slot - table->slots) *
				      series_times_count(table->histograms);
}

struct netobs_times *series_table_value_times(const struct series_table *table,
					      struct series_value *value)
{
	return (struct netobs_times *)(value->value + table->keys->value_size);
}

int series_table_init(struct series_table *table, const struct group_keys *keys,
		      size_t most, uint32_t histograms)
{
	*table = (struct series_table){
		.keys = keys,
		.histograms = histograms,
		.most_slots = most,
		.most_values = VALUES_EACH * most + VALUES_MORE,
		.values.key_at = offsetof(struct series_value, value),
	};
	table->slots = calloc(most, sizeof(*table->slots));
	table->times = calloc(most, times_size(table) ?: 1);
	table->hashes = calloc(most, sizeof(*table->hashes));
	return table->slots && table->times && table->hashes ? 0 : -ENOMEM;
}

void series_table_free(struct series_table *table)
{
	for (size_t i = 0; table->slots && i < table->most_slots; i++)
		free(table->slots[i].text);
	free(table->slots);
	free(table->times);
	free(table->hashes);
	slots_free(&table->values);
}

/* ---- Values -------------------------------------------------------------------------- */

struct series_value *series_table_find(const struct series_table *table,
				       const uint8_t *value)
{
	const uint32_t index = slots_find(&table->values, value);

	return index == SLOT_NONE ? NULL : series_table_at(table, index);
}

void series_table_clear_value(const struct series_table *table,
			      struct series_value *value)
{
	value->sum = (struct series_sum){ 0 };
	memset(series_table_value_times(table, value), 0, times_size(table));
}

static struct series_value *add_value(struct series_table *table,
				      const uint8_t *value,
				      struct series_slot *slot)
{
	const uint32_t index = slots_get(&table->values, value,
					 (uint32_t)table->keys->size,
					 (uint32_t)series_value_size(table));
	struct series_value *added;

	if (index == SLOT_NONE)
		return NULL;
	added = series_table_at(table, index);
	added->slot = (uint32_t)(slot - table->slots);
	memcpy(added->value, value, table->keys->value_size);
	slot->n_values++;
	return added;
}

void series_table_settle(struct series_table *table)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < table->values.n; i++) {
		struct series_value *value = series_table_at(table, i);

		if (value->slot == NO_SLOT ||
		    !series_table_has(table, value->slot))
			continue;
		if (kept != i)
			memcpy(series_table_at(table, kept), value,
			       series_value_size(table));
		kept++;
	}
	table->values.n = kept;
	slots_rehash(&table->values);
}

void series_table_drop_idle(struct series_table *table)
{
	if (table->values.n < table->most_values / 4 * 3)
		return;
	for (uint32_t i = 0; i < table->values.n; i++) {
		struct series_value *value = series_table_at(table, i);
		struct series_slot *slot = &table->slots[value->slot];

		if (!series_sum_is_empty(&value->sum) || slot->n_values == 1)
			continue;
		slot->n_values--;
		value->slot = NO_SLOT;
	}
	series_table_settle(table);
}

/* ---- Series -------------------------------------------------------------------------- */

/* @return a hash that is not 0; equal hashes are compared as text */
static uint64_t hash_text(const char *text, size_t len)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < len; i++)
		hash = hash * 31 + (uint8_t)text[i];
	return hash_finish(hash) | 1;
}

static void write_texts(const struct group_keys *keys, const uint8_t *value,
			struct texts *texts)
{
	texts->len = 0;
	for (size_t i = 0; i < keys->n; i++) {
		char *to = texts->text + texts->len;

		*to = '\0';
		group_keys_text(
			keys, i, value,
			&(struct group_text){ .buf = to,
					      .size = NETOBS_GROUP_TEXT_MAX });
		texts->at[i] = texts->len;
		texts->len += strlen(to) + 1;
	}
	texts->hash = hash_text(texts->text, texts->len);
}

static bool has_texts(const struct series_table *table,
		      const struct series_slot *slot, const struct texts *texts)
{
	return table->hashes[slot - table->slots] == texts->hash &&
	       slot->text_len == texts->len &&
	       !memcmp(slot->text, texts->text, texts->len);
}

static struct series_slot *find_text(const struct series_table *table,
				     const struct texts *texts)
{
	for (size_t i = 0; i < table->most_slots; i++)
		if (has_texts(table, &table->slots[i], texts))
			return &table->slots[i];
	return NULL;
}

struct series_slot *series_table_find_text(const struct series_table *table,
					   const uint8_t *value)
{
	struct texts texts;

	write_texts(table->keys, value, &texts);
	return find_text(table, &texts);
}

static struct series_slot *find_free(const struct series_table *table)
{
	size_t i = 0;

	if (table->n_slots == table->most_slots)
		return NULL;
	while (series_table_has(table, i))
		i++;
	return &table->slots[i];
}

/* @return false: no memory */
static bool set_texts(const struct series_table *table,
		      struct series_slot *slot, const struct texts *texts)
{
	char *text = texts->len ? malloc(texts->len) : NULL;

	if (!text)
		return false;
	memcpy(text, texts->text, texts->len);
	free(slot->text);
	slot->text = text;
	slot->text_len = texts->len;
	for (size_t i = 0; i < table->keys->n; i++)
		slot->row.texts[i] = text + texts->at[i];
	table->hashes[slot - table->slots] = texts->hash;
	return true;
}

static struct series_slot *open_slot(struct series_table *table,
				     const struct texts *texts)
{
	struct series_slot *slot = find_free(table);
	struct netobs_times *times;

	if (!slot)
		return NULL;
	times = series_table_slot_times(table, slot);
	memset(times, 0, times_size(table));
	series_row_init(&slot->row, NETOBS_SERIES_GROUP, times,
			table->histograms);
	if (!set_texts(table, slot, texts))
		return NULL;
	slot->row.n = (uint32_t)table->keys->n;
	table->n_slots++;
	return slot;
}

struct series_value *series_table_open(struct series_table *table,
				       const uint8_t *value)
{
	struct series_slot *slot;
	struct texts texts;

	if (table->values.n == table->most_values)
		return NULL;
	write_texts(table->keys, value, &texts);
	slot = find_text(table, &texts) ?: open_slot(table, &texts);
	return slot ? add_value(table, value, slot) : NULL;
}

void series_table_close(struct series_table *table, struct series_slot *slot)
{
	table->hashes[slot - table->slots] = 0;
	free(slot->text);
	*slot = (struct series_slot){ 0 };
	table->n_slots--;
}

/* ---- Flows and connections ------------------------------------------------------------ */

struct series_event series_event_of_flow(const struct netobs_flow *flow)
{
	return (struct series_event){
		.sum.flows = sum_of_flow(flow),
		.has_rtt = flow_has_new_rtt(flow),
		.has_app_latency = flow_has_new_app_latency(flow),
		.rtt_ns = flow->rtt_ns,
		.app_latency_ns = flow->app_latency_ns,
	};
}

/* A reset after data ends a connection, and is no failure: many servers and clients close in this way. */
static bool has_failed(const struct netobs_session *session)
{
	const enum session_failure failure = session_failure(session->ended);

	return failure != SESSION_FINE &&
	       (failure != SESSION_RESET || (!session->data_segments_sent &&
					     !session->data_segments_received));
}

struct series_event series_event_of_session(const struct netobs_session *session)
{
	return (struct series_event){
		.sum = { .connections = 1,
			 .connections_failed = has_failed(session),
			 .first_end_ns = session->end_ns,
			 .last_end_ns = session->end_ns },
	};
}

static void add_connections(struct series_sum *sum, const struct series_sum *more)
{
	if (!more->connections)
		return;
	if (!sum->connections || more->first_end_ns < sum->first_end_ns)
		sum->first_end_ns = more->first_end_ns;
	if (!sum->connections || more->last_end_ns > sum->last_end_ns)
		sum->last_end_ns = more->last_end_ns;
	sum->connections += more->connections;
	sum->connections_failed += more->connections_failed;
}

void series_sum_add(struct series_sum *sum, const struct series_sum *more)
{
	netobs_group_sum_add(&sum->flows, &more->flows);
	add_connections(sum, more);
}

void series_times_add(struct netobs_times *times, uint32_t histograms,
		      const struct series_event *event)
{
	struct netobs_times *rtt =
		series_times_at(times, histograms, NETOBS_SERIES_RTT);
	struct netobs_times *app_latency =
		series_times_at(times, histograms, NETOBS_SERIES_APP_LATENCY);

	if (rtt && event->has_rtt)
		times_add(rtt, event->rtt_ns);
	if (app_latency && event->has_app_latency)
		times_add(app_latency, event->app_latency_ns);
}

/* ---- Rows --------------------------------------------------------------------------- */

void series_row_init(struct netobs_series_row *row, uint32_t kind,
		     struct netobs_times *times, uint32_t histograms)
{
	*row = (struct netobs_series_row){
		.sz = sizeof(*row),
		.kind = kind,
		.rtt = series_times_at(times, histograms, NETOBS_SERIES_RTT),
		.app_latency = series_times_at(times, histograms,
					       NETOBS_SERIES_APP_LATENCY),
	};
}

void series_row_add(struct netobs_series_row *row, const struct series_sum *sum)
{
	row->flows += sum->flows.flows;
	row->packets += sum->flows.packets;
	row->bytes += sum->flows.bytes;
	row->retransmits += sum->flows.retransmits;
	row->drop_packets += sum->flows.drop_packets;
	row->drop_bytes += sum->flows.drop_bytes;
	row->connections += sum->connections;
	row->connections_failed += sum->connections_failed;
}

void series_row_join(struct netobs_series_row *row,
		     const struct netobs_series_row *more)
{
	const size_t first = offsetof(struct netobs_series_row, flows);
	const size_t end = offsetof(struct netobs_series_row, rtt);

	counters_add(&row->flows, &more->flows, end - first);
}

/* ---- Candidates ---------------------------------------------------------------------- */

enum { WAYS = 4 };

static size_t candidate_size(const struct candidates *candidates)
{
	return sizeof(struct candidate) + candidates->value_size;
}

struct candidate *candidates_at(const struct candidates *candidates, size_t i)
{
	return (struct candidate *)(candidates->all +
				    i * candidate_size(candidates));
}

int candidates_init(struct candidates *candidates, size_t key_size,
		    size_t value_size, size_t at_least)
{
	*candidates = (struct candidates){ .key_size = key_size,
					   .value_size = value_size,
					   .n = WAYS };
	while (candidates->n < at_least)
		candidates->n *= 2;
	candidates->all = calloc(candidates->n, candidate_size(candidates));
	return candidates->all ? 0 : -ENOMEM;
}

/* Misra-Gries: a new group decrements the smallest counter of its bucket, and replaces it at zero. */
void candidates_add(struct candidates *candidates, uint64_t hash,
		    const uint8_t *value, uint64_t bytes)
{
	const size_t first = hash & (candidates->n - 1) & ~(size_t)(WAYS - 1);
	struct candidate *least = NULL;

	for (size_t i = first; i < first + WAYS; i++) {
		struct candidate *candidate = candidates_at(candidates, i);

		if (candidate->bytes && candidate->hash == hash &&
		    !memcmp(candidate->value, value, candidates->key_size)) {
			candidate->bytes += bytes;
			return;
		}
		if (!least || candidate->bytes < least->bytes)
			least = candidate;
	}
	if (least->bytes >= bytes) {
		least->bytes -= bytes;
		return;
	}
	least->hash = hash;
	least->bytes = bytes - least->bytes;
	memcpy(least->value, value, candidates->value_size);
}

void candidates_decay(struct candidates *candidates, uint64_t part)
{
	for (size_t i = 0; i < candidates->n; i++) {
		uint64_t *bytes = &candidates_at(candidates, i)->bytes;

		*bytes -= *bytes / part + !!(*bytes % part);
	}
}

void candidates_free(struct candidates *candidates)
{
	free(candidates->all);
	candidates->all = NULL;
}
