/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* All metrics, each named once: its type, help text, and the location of its values. */
#ifndef NETOBS_SERVICE_METRICS_METRICS_TABLE_H
#define NETOBS_SERVICE_METRICS_METRICS_TABLE_H

#include <net/if.h>
#include <stddef.h>

#include <netobs/alert.h>
#include <netobs/netobs.h>
#include <netobs/sink.h>

#include "metrics.h"
#include "service/outputs/sink_totals.h"

/* ---- The values of all metrics at one moment ------------------------------------------- */

/* An interface that has series, for as long as it is observed. */
struct metrics_interface {
	bool is_used, is_there;
	uint32_t ifindex, netns_inode;
	char name[IF_NAMESIZE];
	char *netns;			    /* NULL: the context's own */
	char container_id[72], pod_uid[40]; /* at its other end; "": not known */
	/* Counts when it got its series: before, the series of other interfaces counted them. */
	struct netobs_crossings before[NETOBS_DIRECTIONS];
	struct netobs_crossings crossed[NETOBS_DIRECTIONS];
};

struct metrics_rule {
	size_t index;
	const char *action, *filter;
	struct netobs_count count, sampled_out;
};

struct metrics_alert {
	const char *name; /* "": all that were replaced */
	struct netobs_alert_counts counts;
};

struct metrics_process {
	uint64_t cpu_ms, start_ms; /* since 1970 */
	uint64_t resident_bytes, virtual_bytes;
	uint64_t fds, max_fds;
};

/* Class i has what took up to 2^i times the shortest; from the last one that is shown on, all that took longer. */
struct metrics_histogram {
	const uint64_t *by_time;
	uint32_t n, shortest_us; /* classes that are shown */
	uint64_t count, sum_ns;
};

struct metrics_series {
	const struct metrics_group *group;
	uint32_t counts;	      /* enum metrics_group_counts, or-ed */
	struct netobs_series_row row; /* its texts belong to the group */
	struct metrics_histogram rtt, app_latency;
};

struct metrics_values {
	struct netobs_stats stats;
	struct netobs_engine_stats engine;
	struct netobs_connection_stats connections; /* all 0 without RTT */
	struct tcp_health health;
	struct metrics_histogram drains, rtt, path_rtt, response_time,
		app_latency; /* of the above */
	struct session_totals sessions;
	struct drop_totals drops;
	struct trace_totals trace;
	struct metrics_process process;
	uint64_t interfaces, shadowed, programs, sampling, errors, warnings;
	uint64_t bpf_stats_enabled;
	struct metrics_interface by_interface[METRICS_INTERFACES];
	bool is_collected; /* at least once */
	struct netobs_crossings others[NETOBS_DIRECTIONS];
	struct sink_total *sinks;
	size_t n_sinks;
	struct metrics_rule rules[NETOBS_RULES_MAX + 2];
	size_t n_rules;
	struct metrics_alert alerts[NETOBS_ALERT_RULES_MAX + 1];
	size_t n_alerts;
	struct metrics_series *series;
	uint32_t n_series, series_size;
	struct netobs_times *times; /* copies of the times of each series */
};

/*
 * @values: of the previous call, or all zero. Without memory, sinks are missing.
 *
 * @return 0; -ENOMEM: series of groups are missing
 */
int metrics_collect(const struct metrics_source *source,
		    struct metrics_values *values);

void metrics_values_done(struct metrics_values *values);

/**
 * Format all metrics.
 *
 * @param ret_text  the caller's, to be freed
 * @return 0 or -ENOMEM
 */
int metrics_format(const struct metrics_values *values, char **ret_text,
		   size_t *ret_len);

/* ---- Metrics table --------------------------------------------------------------------- */

enum {
	METRICS_LABELS_MAX =
		4096 /* four and the name of a group, when each byte becomes three */
};

/* The labels of a series: NAME="VALUE",NAME="VALUE" */
struct metrics_labels {
	char text[METRICS_LABELS_MAX];
	size_t len;
};

void metrics_label_add(struct metrics_labels *labels, const char *name,
		       const char *value);
void metrics_label_index(struct metrics_labels *labels, const char *name,
			 size_t value);

/* Series @i of a metric. */
struct metrics_at {
	const struct metric *metric;
	const struct metrics_values *values;
	size_t i;
	struct metrics_labels *labels;
};

/*
 * Adds the labels of series @i, and returns the struct that its value is in; NULL: there are no
 * more series; METRICS_SKIP: no series for this @i.
 */
typedef const void *metrics_set(const struct metrics_at *at);

extern const char metrics_skip;
#define METRICS_SKIP ((const void *)&metrics_skip)

enum metrics_type { COUNTER, GAUGE, HISTOGRAM };

/* A series of a metric, and the offset of its value in struct metrics_values. */
struct metrics_part {
	const char *name; /* NULL: the end of a list */
	size_t offset;
};

/*
 * The name of a counter goes without its "_total". Its last word is the unit, if it is
 * bytes or seconds.
 */
struct metric {
	const char *name;
	enum metrics_type type;
	const char *help;
	metrics_set *set;
	/* Offset in the returned struct: of a uint64_t, or of a struct metrics_histogram. */
	size_t offset;
	unsigned int digits; /* digits of the value behind the point: 9 for nanoseconds */
	const struct metrics_part *parts; /* each is a series, with @label; or NULL */
	const char *label;
	uint32_t counts; /* a series of groups has to have all of these */
};

extern const struct metric metrics_table[];
extern const size_t metrics_table_size;

#endif
