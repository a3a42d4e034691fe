/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The end of an interval: makes its records, and chooses the groups that have a series from then on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/series.h>

#include "base/util.h"
#include "series_state.h"
#include "keys.h"

enum {
	SCORE_OF = 16, /* in intervals: each interval takes one of so many parts off a score */
	TEXTS_EACH = 1024, /* candidates whose text is compared with that of series */
	/* Part of all series that new groups get at once, so that no call takes long. */
	ENTERING = 32,
	ENTERING_MIN = 16
};

/* ---- Records -------------------------------------------------------------------------- */

static void fill_flows(struct netobs_group_record *record,
		       const struct netobs_group_sum *sum)
{
	record->start_ns = sum->start_ns;
	record->end_ns = sum->end_ns;
	record->flows = sum->flows;
	record->packets = sum->packets;
	record->bytes = sum->bytes;
	record->sent_packets = sum->sent_packets;
	record->sent_bytes = sum->sent_bytes;
	record->rtt_samples = sum->rtt_samples;
	record->rtt_ns = sum_rtt_ns(sum);
	record->rtt_sum_ns = sum->rtt_sum_ns;
	record->retransmits = sum->retransmits;
	record->drop_packets = sum->drop_packets;
	record->drop_bytes = sum->drop_bytes;
	record->sampling = sum->is_mixed ? 0 : sum->sampling;
	record->record.has |= sum->rtt_samples ? NETOBS_GROUP_HAS_RTT : 0;
}

static void fill_connections(struct netobs_group_record *record,
			     const struct series_sum *sum)
{
	if (!sum->connections)
		return;
	record->connections = sum->connections;
	record->connections_failed = sum->connections_failed;
	if (!sum->flows.flows || sum->first_end_ns < record->start_ns)
		record->start_ns = sum->first_end_ns;
	if (!sum->flows.flows || sum->last_end_ns > record->end_ns)
		record->end_ns = sum->last_end_ns;
}

static void fill_times(struct netobs_times *ret_times,
		       const struct netobs_times *times,
		       struct netobs_group_record *record, uint32_t bit)
{
	if (!times || !times->n)
		return;
	*ret_times = *times;
	record->record.has |= bit;
}

static void fill_histograms(struct netobs_group_record *record,
			    struct netobs_times *times, uint32_t histograms)
{
	fill_times(&record->rtt_times,
		   series_times_at(times, histograms, NETOBS_SERIES_RTT),
		   record, NETOBS_GROUP_HAS_RTT_TIMES);
	fill_times(&record->app_latency_times,
		   series_times_at(times, histograms, NETOBS_SERIES_APP_LATENCY),
		   record, NETOBS_GROUP_HAS_APP_LATENCY_TIMES);
}

/*
 * Fill all members but the time and the name.
 *
 * @value  of the group; NULL: the group of other flows
 * @times  the histograms that @histograms, enum netobs_series_histogram, chooses
 */
static void fill_record(struct netobs_group_record *ret_record,
			const struct group_keys *keys, const uint8_t *value,
			const struct series_sum *sum,
			struct netobs_times *times, uint32_t histograms)
{
	*ret_record = (struct netobs_group_record){
		.record = { .sz = sizeof(*ret_record),
			    .type = NETOBS_RECORD_GROUP },
		.series = value ? NETOBS_SERIES_GROUP : NETOBS_SERIES_OTHER,
	};
	fill_flows(ret_record, &sum->flows);
	fill_connections(ret_record, sum);
	fill_histograms(ret_record, times, histograms);
	if (keys->flags & NETOBS_GROUP_BOTH_ENDS)
		ret_record->record.has |= NETOBS_GROUP_HAS_SENT;
	if (value)
		group_keys_record(keys, value, ret_record);
}

struct takers {
	int64_t time_ns;
	void (*take)(const struct netobs_record *record, void *user);
	void *user;
	int n;
};

static void report_sum(const struct netobs_series *series, const uint8_t *value,
		       const struct series_sum *sum, struct netobs_times *times,
		       struct takers *takers)
{
	struct netobs_group_record record;

	if (!takers->take || series_sum_is_empty(sum))
		return;
	fill_record(&record, &series->keys, value, sum, times,
		    series->histograms);
	record.record.time_ns = takers->time_ns;
	memcpy(record.name, series->name, sizeof(record.name));
	takers->take(&record.record, takers->user);
	takers->n++;
}

static void report_interval(struct netobs_series *series, struct takers *takers)
{
	const struct series_table *table = &series->table;

	for (uint32_t i = 0; i < table->values.n; i++) {
		struct series_value *value = series_table_at(table, i);

		if (series_sum_is_empty(&value->sum))
			continue;
		report_sum(series, value->value, &value->sum,
			   series_table_value_times(table, value), takers);
		series_table_clear_value(table, value);
	}
	report_sum(series, NULL, &series->other_sum, series->other_sum_times,
		   takers);
	series->other_sum = (struct series_sum){ 0 };
	memset(series->other_sum_times, 0,
	       series_times_count(series->histograms) *
		       sizeof(*series->other_sum_times));
}

/* ---- Which groups have a series --------------------------------------------------------- */

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = *(const struct candidate *const *)a;
	const struct candidate *right = *(const struct candidate *const *)b;

	return (left->bytes < right->bytes) - (left->bytes > right->bytes);
}

static int compare_slots(const void *a, const void *b)
{
	const struct series_slot *left = *(struct series_slot *const *)a;
	const struct series_slot *right = *(struct series_slot *const *)b;

	return (left->score > right->score) - (left->score < right->score);
}

static size_t sort_candidates(struct netobs_series *series)
{
	size_t n = 0;

	for (size_t i = 0; i < series->candidates.n; i++) {
		struct candidate *candidate =
			candidates_at(&series->candidates, i);

		if (candidate->bytes)
			series->heaviest[n++] = candidate;
	}
	if (n)
		qsort(series->heaviest, n, sizeof(*series->heaviest),
		      compare_candidates);
	return n;
}

/* A score covers SCORE_OF intervals; a younger series is assumed to have gone on like this before. */
static void add_to_score(struct series_slot *slot)
{
	const uint64_t bytes = slot->interval_bytes;

	slot->interval_bytes = 0;
	if (slot->age == SCORE_OF) {
		slot->score += bytes - slot->score / SCORE_OF;
		return;
	}
	slot->score = slot->score / SCORE_OF * slot->age + bytes;
	slot->age++;
	slot->score = slot->score * SCORE_OF / slot->age;
}

static void add_to_scores(struct netobs_series *series)
{
	for (size_t i = 0; i < series->table.most_slots; i++)
		if (series_table_has(&series->table, i))
			add_to_score(&series->table.slots[i]);
}

static size_t sort_slots(struct netobs_series *series)
{
	struct series_table *table = &series->table;
	size_t n = 0;

	for (size_t i = 0; i < table->most_slots; i++) {
		struct series_slot *slot = &table->slots[i];

		if (!series_table_has(table, i))
			continue;
		series->lightest[n++] = slot;
	}
	if (n)
		qsort(series->lightest, n, sizeof(*series->lightest),
		      compare_slots);
	return n;
}

/* Both sums cover SCORE_OF intervals, so that one heavy interval alone is not enough. */
static bool is_heavier(const struct candidate *candidate,
		       const struct series_slot *slot)
{
	return candidate->bytes / 2 > slot->score;
}

static void close_series(struct netobs_series *series, struct series_slot *slot)
{
	series_row_join(&series->left, &slot->row);
	counters_add(series->left_times,
		     series_table_slot_times(&series->table, slot),
		     series_times_count(series->histograms) *
			     sizeof(*series->left_times));
	series_table_close(&series->table, slot);
}

static struct series_value *open_value(struct netobs_series *series,
				       struct candidate *candidate)
{
	struct series_value *value =
		series_table_open(&series->table, candidate->value);
	struct series_slot *slot;

	if (!value)
		return NULL;
	slot = &series->table.slots[value->slot];
	slot->score += candidate->bytes;
	slot->age = slot->age ?: SCORE_OF;
	candidate->bytes = 0;
	return value;
}

/* Candidates with the text of a series belong to it. @return how many others remain */
static size_t join_series(struct netobs_series *series, size_t n)
{
	const struct series_table *table = &series->table;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct candidate *candidate = series->heaviest[i];

		if (i < TEXTS_EACH && table->values.n < table->most_values &&
		    series_table_find_text(table, candidate->value))
			open_value(series, candidate);
		else
			series->heaviest[kept++] = candidate;
	}
	return kept;
}

/* A value with the text of a series that has no room for it must not open that series again. */
static bool may_enter(const struct netobs_series *series,
		      const struct candidate *candidate,
		      const struct series_slot *slot)
{
	return is_heavier(candidate, slot) &&
	       !series_table_find_text(&series->table, candidate->value);
}

static void choose_series(struct netobs_series *series)
{
	struct series_table *table = &series->table;
	const size_t most = table->most_slots / ENTERING + ENTERING_MIN;
	size_t n, n_slots, leaving = 0;

	add_to_scores(series);
	n = join_series(series, sort_candidates(series));
	n_slots = sort_slots(series);
	while (leaving < n && leaving < n_slots && leaving < most &&
	       may_enter(series, series->heaviest[leaving],
			 series->lightest[leaving]))
		close_series(series, series->lightest[leaving++]);
	if (leaving)
		series_table_settle(table);
	for (size_t i = 0; i < leaving; i++)
		open_value(series, series->heaviest[i]);
	candidates_decay(&series->candidates, SCORE_OF);
}

/* ---- All ------------------------------------------------------------------------------ */

int netobs_series_end_interval(struct netobs_series *series, int64_t time_ns,
			       void (*take)(const struct netobs_record *record,
					    void *user),
			       void *user)
{
	struct takers takers = { time_ns, take, user, 0 };

	if (!series)
		return -EINVAL;
	series_table_drop_idle(&series->table);
	report_interval(series, &takers);
	choose_series(series);
	return takers.n;
}
