/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The groups of a service: counters for its metrics, and records at the end of each interval. */
#ifndef NETOBS_SERVICE_SERVICE_GROUPS_H
#define NETOBS_SERVICE_SERVICE_GROUPS_H

#include <netobs/series.h>

#include "service/metrics/metrics.h"
#include "service_config.h"

struct json;

struct service_group {
	char *name, *by,
		*networks; /* the latter as service_config.networks_text */
	uint32_t most;	   /* series */
	uint32_t histograms;
	uint32_t counts; /* observed values: enum metrics_group_counts, or-ed */
	bool has_records;
	struct netobs_series *series;
};

struct service_groups {
	struct service_group groups[SERVICE_GROUPS_MAX];
	size_t n;
	struct metrics_group metrics[SERVICE_GROUPS_MAX]; /* groups with metrics */
	size_t n_metrics;
};

/**
 * Use the groups of @config. Unchanged groups keep their counts, others begin at 0. The interval of
 * removed groups ends.
 *
 * @param take  gets the records of removed groups
 *
 * @return 0; -errno: one is missing
 */
int service_groups_commit(struct service_groups *groups,
			  const struct service_config *config, int64_t time_ns,
			  void (*take)(const struct netobs_record *record,
				       void *user),
			  void *user);

/** @record: a flow or a session */
void service_groups_add(struct service_groups *groups,
			const struct netobs_record *record);

/** End an interval. @take gets the records of groups with records = yes. */
void service_groups_interval(struct service_groups *groups, int64_t time_ns,
			     void (*take)(const struct netobs_record *record,
					  void *user),
			     void *user);

/** Add "groups" to the status, unless there are none. */
void service_groups_json(const struct service_groups *groups, struct json *json);

void service_groups_clear(struct service_groups *groups);

#endif
