/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Series: adds flows and connections to them. A flow is added to the series of its group, or else to
 * that of other flows, and never subtracted: so the sum is exact at each moment. When a series ends,
 * its counts go to NETOBS_SERIES_LEFT, since other flows would have them in their rate a second time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/series.h>

#include "base/options.h"
#include "base/util.h"
#include "record/any.h"
#include "series_state.h"

enum {
	DEFAULT_SERIES = 500,
	/* Candidates for each series, up to CANDIDATES_MANY in all. */
	CANDIDATES_EACH = 8,
	CANDIDATES_MANY = 8192,
	HISTOGRAMS = NETOBS_SERIES_RTT | NETOBS_SERIES_APP_LATENCY,
};

/* ---- Life ---------------------------------------------------------------------------- */

/* Prepare the rows that belong to no group. */
static int init_rows(struct netobs_series *series)
{
	const size_t n = series_times_count(series->histograms);
	struct netobs_times *times = calloc(3 * n + 1, sizeof(*times));

	if (!times)
		return -ENOMEM;
	series->other_times = times;
	series->left_times = times + n;
	series->other_sum_times = times + 2 * n;
	series_row_init(&series->other, NETOBS_SERIES_OTHER,
			series->other_times, series->histograms);
	series_row_init(&series->left, NETOBS_SERIES_LEFT, series->left_times,
			series->histograms);
	return 0;
}

static int fill_series(struct netobs_series *series, size_t most)
{
	const struct group_keys *keys = &series->keys;
	const size_t some = min_u64(CANDIDATES_EACH * most, CANDIDATES_MANY);
	int err = series_table_init(&series->table, keys, most,
				    series->histograms);

	err = err ?: init_rows(series);
	if (!err)
		err = candidates_init(&series->candidates, keys->size,
				      keys->value_size,
				      some > 2 * most ? some : 2 * most);
	if (err)
		return err;
	series->heaviest =
		calloc(series->candidates.n, sizeof(*series->heaviest));
	series->lightest = calloc(most, sizeof(*series->lightest));
	if (!series->heaviest || !series->lightest)
		return -ENOMEM;
	return 0;
}

static int check_series(const struct netobs_series_opts *opts,
			struct group_keys *ret_keys, const struct log *log)
{
	char why[NETOBS_ERROR_MAX] = "series need a key";

	if (!opts->keys ||
	    group_keys_parse(opts->keys, ret_keys, why, sizeof(why)) < 0 ||
	    !ret_keys->n)
		log_error(log, "keys: %s", why);
	else if (opts->max_series > NETOBS_SERIES_MAX)
		log_error(log, "max_series: more than %d", NETOBS_SERIES_MAX);
	else if (opts->histograms & ~(uint32_t)HISTOGRAMS)
		log_error(log, "histograms: there is no such bit");
	else if (opts->name && strlen(opts->name) > SERIES_NAME_MAX)
		log_error(log, "name: more than %d bytes", (int)SERIES_NAME_MAX);
	else
		return 0;
	return -EINVAL;
}

static int new_series(const struct netobs_series_opts *opts,
		      const struct log *log, struct netobs_series **ret_series)
{
	struct group_keys keys = { 0 };
	struct netobs_series *series;
	int err = check_series(opts, &keys, log);

	if (err)
		return err;
	series = calloc(1, sizeof(*series));
	if (!series)
		return -ENOMEM;
	series->keys = keys;
	series->histograms = opts->histograms;
	memcpy(series->name, opts->name ?: "", strlen(opts->name ?: ""));
	err = group_keys_set_networks(&series->keys, opts->networks);
	err = err ?: fill_series(series, opts->max_series ?: DEFAULT_SERIES);
	if (err < 0)
		netobs_series_free(series);
	else
		*ret_series = series;
	return err;
}

int netobs_series_new(const struct netobs_series_opts *opts,
		      struct netobs_series **ret_series)
{
	struct netobs_series_opts known = { 0 };
	struct log_error error = { 0 };
	const struct log log = { .error = &error };
	int err;

	if (!opts || !ret_series)
		return -EINVAL;
	err = sized_check(opts, sizeof(known), &log);
	memcpy(&known, opts, min_u64(opts->sz, sizeof(known)));
	if (!err)
		err = new_series(&known, &log, ret_series);
	err = log_keep_error(&log, "series", err);
	if (err < 0)
		log_copy_error(&log, known.error);
	return err;
}

void netobs_series_free(struct netobs_series *series)
{
	if (!series)
		return;
	series_table_free(&series->table);
	group_keys_done(&series->keys);
	candidates_free(&series->candidates);
	session_ends_free(&series->ends);
	free(series->other_times);
	free(series->heaviest);
	free(series->lightest);
	free(series);
}

/* ---- Flows and connections ------------------------------------------------------------ */

static void count_other(struct netobs_series *series,
			const struct series_event *event)
{
	series_row_add(&series->other, &event->sum);
	series_sum_add(&series->other_sum, &event->sum);
	series_times_add(series->other_times, series->histograms, event);
	series_times_add(series->other_sum_times, series->histograms, event);
}

static void count_value(const struct series_table *table,
			struct series_value *value,
			const struct series_event *event)
{
	struct series_slot *slot = &table->slots[value->slot];

	slot->interval_bytes += event->sum.flows.bytes;
	series_row_add(&slot->row, &event->sum);
	series_sum_add(&value->sum, &event->sum);
	series_times_add(series_table_slot_times(table, slot),
			 table->histograms, event);
	series_times_add(series_table_value_times(table, value),
			 table->histograms, event);
}

static void add_to_series(struct netobs_series *series, const uint8_t *bytes,
			  const struct series_event *event)
{
	struct series_table *table = &series->table;
	struct series_value *value = series_table_find(table, bytes);

	if (!value && !series_table_is_full(table))
		value = series_table_open(table, bytes);
	if (value) {
		group_keys_take_names(&series->keys, value->value, bytes);
		count_value(table, value, event);
		return;
	}
	count_other(series, event);
	candidates_add(&series->candidates,
		       slots_hash(&table->values, bytes, series->keys.size),
		       bytes, event->sum.flows.bytes);
}

static void add_end(struct netobs_series *series,
		    const struct netobs_flow *flow, enum flow_end server,
		    enum flow_end end, const struct series_event *event)
{
	_Alignas(uint64_t) uint8_t bytes[GROUP_VALUE_MAX];

	group_keys_fill(&series->keys, flow, server, end, bytes);
	add_to_series(series, bytes, event);
}

static void add_flow(struct netobs_series *series, const struct netobs_flow *flow)
{
	const enum flow_end server = server_find(&series->servers, flow);
	struct series_event event = series_event_of_flow(flow);

	if (group_keys_count(&series->keys, flow, FLOW_DESTINATION))
		add_end(series, flow, server, FLOW_DESTINATION, &event);
	if (series->keys.flags & NETOBS_GROUP_BOTH_ENDS) {
		event.sum.flows.sent_packets = event.sum.flows.packets;
		event.sum.flows.sent_bytes = event.sum.flows.bytes;
	}
	if (group_keys_count(&series->keys, flow, FLOW_SOURCE))
		add_end(series, flow, server, FLOW_SOURCE, &event);
}

static void add_session(struct netobs_series *series,
			const struct netobs_session *session)
{
	const bool has_both = series->keys.flags & NETOBS_GROUP_BOTH_ENDS;
	struct series_event event;
	struct session_flow as;

	if (session->ended == NETOBS_SESSION_OPEN ||
	    (!has_both && !session_ends_is_first(&series->ends, session)))
		return;
	event = series_event_of_session(session);
	session_flow_make(&as, session, &series->servers);
	add_end(series, &as.flow, FLOW_DESTINATION, as.local, &event);
}

int netobs_series_add(struct netobs_series *series,
		      const struct netobs_record *record)
{
	union any_record copy;

	record = series && record ? record_view(record, &copy) : NULL;
	if (record && record->type == NETOBS_RECORD_FLOW)
		add_flow(series, (const struct netobs_flow *)record);
	else if (record && record->type == NETOBS_RECORD_SESSION)
		add_session(series, (const struct netobs_session *)record);
	else
		return -EINVAL;
	return 0;
}

/* ---- Rows ---------------------------------------------------------------------------- */

int netobs_series_each(const struct netobs_series *series,
		       void (*take)(const struct netobs_series_row *row,
				    void *user),
		       void *user)
{
	if (!series || !take)
		return -EINVAL;
	for (size_t i = 0; i < series->table.most_slots; i++)
		if (series_table_has(&series->table, i))
			take(&series->table.slots[i].row, user);
	take(&series->other, user);
	take(&series->left, user);
	return (int)series->table.n_slots + 2;
}
