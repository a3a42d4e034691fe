/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "metrics_table.h"

/* Series of groups, by the names of keys; then other flows, and removed series. */
const void *metrics_groups_flows(const struct metrics_values *values, size_t i,
				 struct metrics_labels *labels)
{
	static const char *const kinds[] = {
		[NETOBS_SERIES_OTHER] = "other", [NETOBS_SERIES_LEFT] = "left"
	};
	const struct metrics_series *series = values->series + i;

	if (i == values->n_series)
		return NULL;
	metrics_label_add(labels, "group", series->group->name);
	if (series->row.kind != NETOBS_SERIES_GROUP)
		metrics_label_add(labels, "series", kinds[series->row.kind]);
	for (uint32_t key = 0; key < series->row.n; key++)
		metrics_label_add(labels, series->group->keys.names[key],
				  series->row.texts[key]);
	return series;
}

/* No series for values that are not observed: they would be always 0. */
static const void *set_counted(const struct metrics_values *values, size_t i,
			       struct metrics_labels *labels,
			       enum metrics_group_counts counts)
{
	if (i < values->n_series && !(values->series[i].group->counts & counts))
		return METRICS_SKIP;
	return metrics_groups_flows(values, i, labels);
}

const void *metrics_groups_tcp(const struct metrics_values *values, size_t i,
			       struct metrics_labels *labels)
{
	return set_counted(values, i, labels, METRICS_GROUP_TCP);
}

const void *metrics_groups_drops(const struct metrics_values *values, size_t i,
				 struct metrics_labels *labels)
{
	return set_counted(values, i, labels, METRICS_GROUP_DROPS);
}

const void *metrics_groups_connections(const struct metrics_values *values,
				       size_t i, struct metrics_labels *labels)
{
	return set_counted(values, i, labels, METRICS_GROUP_CONNECTIONS);
}

/* Series of groups that have these histograms. */
const void *metrics_groups_rtt(const struct metrics_values *values, size_t i,
			       struct metrics_labels *labels)
{
	if (i < values->n_series && !values->series[i].rtt.by_time)
		return METRICS_SKIP;
	return metrics_groups_flows(values, i, labels);
}

const void *metrics_groups_app_latency(const struct metrics_values *values,
				       size_t i, struct metrics_labels *labels)
{
	if (i < values->n_series && !values->series[i].app_latency.by_time)
		return METRICS_SKIP;
	return metrics_groups_flows(values, i, labels);
}
