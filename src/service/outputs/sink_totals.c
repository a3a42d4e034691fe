/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "sink_totals.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"

const char *sink_reason_name(unsigned int reason)
{
	return reason == SINK_GIVEN_UP ? "given_up" :
					 netobs_sink_drop_name(reason);
}

/* ---- Sums ------------------------------------------------------------------------- */

static void add_sink_count(struct netobs_sink_count *sum,
			   const struct netobs_sink_count *count)
{
	counters_add(sum, count, sizeof(*sum));
}

static void add_sink_stats(struct netobs_sink_stats *sum,
			   const struct netobs_sink_stats *stats)
{
	counters_add(&sum->taken, &stats->taken,
		     offsetof(struct netobs_sink_stats, spool_bytes) -
			     offsetof(struct netobs_sink_stats, taken));
	/* A spool counts from its beginning, across the sinks that have it. */
	sum->durable_records =
		max_u64(sum->durable_records, stats->durable_records);
	sum->pending_ms = max_u64(sum->pending_ms, stats->pending_ms);
	sum->delivered_ns = max_i64(sum->delivered_ns, stats->delivered_ns);
}

static void add_counter(void *user, const char *name, uint64_t value)
{
	struct sink_total *total = user;
	size_t i = 0;

	while (i < total->n_counters && strcmp(total->counters[i].name, name) != 0)
		i++;
	if (i == SINK_COUNTERS_MAX)
		return;
	if (i == total->n_counters) {
		total->counters[i].name = name;
		total->counters[i].value = 0;
		total->n_counters++;
	}
	total->counters[i].value += value;
}

static void add_total(struct sink_total *sum, const struct sink_total *total)
{
	add_sink_stats(&sum->stats, &total->stats);
	add_sink_count(&sum->kept, &total->kept);
	for (size_t i = 0; i < total->n_counters; i++)
		add_counter(sum, total->counters[i].name,
			    total->counters[i].value);
}

static void set_target(struct sink_total *total, const struct output *output)
{
	snprintf(total->target, sizeof(total->target), "%.*s",
		 output_name_len(output), output->spec);
}

/* The spool that matters is that of the sink in use: the others get no records. */
static void add_open_sink(struct sink_total *total, const struct output *output,
			  const struct netobs_sink *sink)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };

	netobs_sink_stats_get(sink, &stats);
	add_sink_stats(&total->stats, &stats);
	netobs_sink_counters(sink, add_counter, total);
	total->is_connected = (!total->is_open || total->is_connected) &&
			      !stats.outage_ns;
	if (!total->is_open || !output->is_leaving) {
		set_target(total, output);
		total->stats.spool_bytes = stats.spool_bytes;
		total->stats.spool_max_bytes = stats.spool_max_bytes;
	}
	total->is_open = true;
}

/* ---- Names ------------------------------------------------------------------------ */

static struct sink_total *find_total(struct sink_total *list, size_t n,
				     const char *name)
{
	/* Names are cut to the length that is kept. */
	const size_t len = sizeof(list->name) - 1;

	for (size_t i = 0; i < n; i++)
		if (!strncmp(list[i].name, name, len))
			return &list[i];
	return NULL;
}

static struct sink_total *add_name(struct sink_total *list, size_t *n,
				   const char *name)
{
	struct sink_total *total = find_total(list, *n, name);

	if (total)
		return total;
	total = &list[(*n)++];
	*total = (struct sink_total){ 0 };
	snprintf(total->name, sizeof(total->name), "%s", name);
	return total;
}

/* ---- Closed sinks ----------------------------------------------------------------- */

/* @return the name that counts the sink: "all others" if there are too many names */
static const char *name_of_total(const struct sink_totals *totals,
				 const char *name)
{
	return totals->n < SINK_TOTALS_MAX - 1 ||
			       find_total(totals->list, totals->n, name) ?
		       name :
		       "all others";
}

int sink_totals_reserve(struct sink_totals *totals, const char *name)
{
	struct sink_total *list;

	name = name_of_total(totals, name);
	if (find_total(totals->list, totals->n, name))
		return 0;
	list = reallocarray(totals->list, totals->n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	totals->list = list;
	add_name(list, &totals->n, name);
	return 0;
}

void sink_totals_keep(struct sink_totals *totals, const struct output *output)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };
	const struct netobs_sink *sink = output->sink;
	struct sink_total *total = find_total(
		totals->list, totals->n, name_of_total(totals, output->name));

	if (!sink || !total)
		return;
	netobs_sink_stats_get(sink, &stats);
	add_sink_count(output_is_on_disk(output) ? &total->kept :
						   &stats.dropped[SINK_GIVEN_UP],
		       &stats.pending);
	stats.pending = (struct netobs_sink_count){ 0 };
	stats.pending_ms = 0;
	add_sink_stats(&total->stats, &stats);
	netobs_sink_counters(sink, add_counter, total);
	set_target(total, output);
}

void sink_totals_done(struct sink_totals *totals)
{
	free(totals->list);
	*totals = (struct sink_totals){ 0 };
}

/* ---- All -------------------------------------------------------------------------- */

static void add_output(struct sink_total *list, size_t *n,
		       const struct output *output, size_t index)
{
	const struct netobs_sink *sink = output->sink;
	char name[24];

	if (!sink || output->is_prepared)
		return;
	snprintf(name, sizeof(name), "%zu", index);
	add_open_sink(add_name(list, n, output->name ?: name), output, sink);
}

/* A name without a target has closed no sink. */
static void add_closed(struct sink_total *list, size_t *n,
		       const struct sink_total *closed)
{
	struct sink_total *total;

	if (!*closed->target)
		return;
	total = add_name(list, n, closed->name);
	add_total(total, closed);
	if (!total->is_open)
		memcpy(total->target, closed->target, sizeof(total->target));
}

size_t sink_totals_sum(const struct sink_totals *closed,
		       const struct output *outputs, size_t n_outputs,
		       struct sink_total **ret_list)
{
	const size_t n_closed = closed ? closed->n : 0;
	size_t n = 0;

	*ret_list = calloc(n_outputs + n_closed + 1, sizeof(**ret_list));
	if (!*ret_list)
		return 0;
	for (size_t i = 0; i < n_outputs; i++)
		add_output(*ret_list, &n, &outputs[i], i);
	for (size_t i = 0; i < n_closed; i++)
		add_closed(*ret_list, &n, &closed->list[i]);
	return n;
}

static void add_count_object(struct json *json, const char *key,
			     const struct netobs_sink_count *count)
{
	json_key_open(json, key, '{');
	json_key_u64(json, "records", count->records);
	json_key_u64(json, "packets", count->packets);
	json_key_u64(json, "bytes", count->bytes);
	json_close(json, '}');
}

void sink_totals_json(struct json *json, const char *key,
		      const struct sink_total *list, size_t n)
{
	json_key_open(json, key, '[');
	for (const struct sink_total *total = list; total < list + n; total++) {
		json_open(json, '{');
		json_key_string(json, "name", total->name);
		json_key_string(json, "sink", total->target);
		add_count_object(json, "taken", &total->stats.taken);
		add_count_object(json, "recovered", &total->stats.recovered);
		add_count_object(json, "delivered", &total->stats.delivered);
		add_count_object(json, "pending", &total->stats.pending);
		json_key_open(json, "dropped", '{');
		for (unsigned int i = 0; i < SINK_REASONS; i++)
			add_count_object(json, sink_reason_name(i),
					 &total->stats.dropped[i]);
		json_close(json, '}');
		add_count_object(json, "kept", &total->kept);
		json_close(json, '}');
	}
	json_close(json, ']');
}
