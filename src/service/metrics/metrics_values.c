/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "metrics_table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "service/options/rules.h"
#include "base/clock_ms.h"
#include "base/times.h"

enum {
	TIME_BUCKETS = 21 /* buckets of times: up to 8.4 s, and longer */
};

/* ---- Interfaces ------------------------------------------------------------------- */

static bool is_same_interface(const struct metrics_interface *known,
			      const struct netobs_interface *interface)
{
	return known->is_used && known->ifindex == interface->ifindex &&
	       known->netns_inode == interface->netns_inode;
}

/* @return the interface's series, or a free one; NULL: all are in use */
static struct metrics_interface *
find_series(struct metrics_values *values,
	    const struct netobs_interface *interface)
{
	struct metrics_interface *all = values->by_interface, *free = NULL;

	for (size_t i = 0; i < METRICS_INTERFACES; i++) {
		if (is_same_interface(&all[i], interface))
			return &all[i];
		if (!all[i].is_used && !free)
			free = &all[i];
	}
	if (!free)
		return NULL;
	*free = (struct metrics_interface){
		.is_used = true,
		.ifindex = interface->ifindex,
		.netns_inode = interface->netns_inode,
		.netns = interface->netns ? strdup(interface->netns) : NULL,
	};
	/* Until now, the series of all other interfaces has counted its packets. */
	if (values->is_collected)
		memcpy(free->before, interface->crossed, sizeof(free->before));
	return free;
}

static void list_interface(const struct netobs_interface *interface, void *user)
{
	struct metrics_interface *series = find_series(user, interface);

	if (!series)
		return;
	series->is_there = true;
	snprintf(series->name, sizeof(series->name), "%s", interface->name);
	snprintf(series->container_id, sizeof(series->container_id), "%s",
		 interface->container_id ?: "");
	snprintf(series->pod_uid, sizeof(series->pod_uid), "%s",
		 interface->pod_uid ?: "");
	for (int d = 0; d < NETOBS_DIRECTIONS; d++) {
		series->crossed[d] = interface->crossed[d];
		counters_subtract(&series->crossed[d], &series->before[d],
				  sizeof(series->crossed[d]));
	}
}

static void free_series(struct metrics_interface *series)
{
	free(series->netns);
	*series = (struct metrics_interface){ 0 };
}

/* The sum over interfaces without a series, including removed ones: it only grows. */
static void sum_up_others(struct metrics_values *values)
{
	for (size_t i = 0; i < METRICS_INTERFACES; i++)
		for (int d = 0; d < NETOBS_DIRECTIONS; d++)
			counters_subtract(&values->others[d],
					  &values->by_interface[i].crossed[d],
					  sizeof(values->others[d]));
}

static void collect_interfaces(const struct netobs *ctx,
			       struct metrics_values *values)
{
	for (size_t i = 0; i < METRICS_INTERFACES; i++)
		values->by_interface[i].is_there = false;
	netobs_interfaces(ctx, list_interface, values, values->others);
	for (size_t i = 0; i < METRICS_INTERFACES; i++)
		if (!values->by_interface[i].is_there)
			free_series(&values->by_interface[i]);
	values->is_collected = true;
	sum_up_others(values);
}

/* ---- Sinks and rules -------------------------------------------------------------- */

/* Order: the rules of the file, then the default, then the rules that were replaced. */
static void collect_rules(const struct metrics_source *source,
			  struct metrics_values *values)
{
	const struct rules *rules = source->rules;
	struct netobs_count count;

	values->n_rules = 0;
	for (uint32_t i = 0; rules && i < rules->n + 2; i++) {
		struct metrics_rule *rule = &values->rules[values->n_rules];

		if (netobs_rule_count_get(source->ctx, i, &count))
			return;
		*rule = (struct metrics_rule){ .index = i, .count = count };
		netobs_rule_sampled_out_get(source->ctx, i, &rule->sampled_out);
		if (i < rules->n) {
			rule->action = rules_action(rules->list[i].action);
			rule->filter = rules->list[i].filter;
		} else {
			rule->action =
				i == rules->n ?
					rules_action(rules->default_action) :
					"";
			rule->filter = i == rules->n ? "default" : "replaced";
		}
		values->n_rules++;
	}
}

/* The rules in use, then the sum of the rules that were replaced. */
static void collect_alerts(const struct metrics_source *source,
			   struct metrics_values *values)
{
	const struct alert_rules *rules = source->alerts;

	values->n_alerts = 0;
	for (uint32_t i = 0; rules && rules->n && i <= rules->n; i++) {
		struct metrics_alert *alert = &values->alerts[values->n_alerts];

		alert->counts.sz = sizeof(alert->counts);
		if (netobs_alert_counts_get(source->ctx, i, &alert->counts))
			return;
		alert->name = i < rules->n ? rules->list[i].name : "";
		values->n_alerts++;
	}
}

/* ---- Groups ------------------------------------------------------------------------ */

struct series_taker {
	struct metrics_values *values;
	int err;
	const struct metrics_group *group;
};

static void take_series(const struct netobs_series_row *row, void *user)
{
	struct series_taker *taker = user;
	struct metrics_values *values = taker->values;

	if (!array_reserve(&values->series, values->n_series,
			   &values->series_size, sizeof(*values->series), 64)) {
		taker->err = -ENOMEM;
		return;
	}
	values->series[values->n_series++] = (struct metrics_series){
		.group = taker->group,
		.counts = taker->group->counts |
			  (row->rtt ? METRICS_GROUP_RTT : 0U) |
			  (row->app_latency ? METRICS_GROUP_APP_LATENCY : 0U),
		.row = *row,
	};
}

static struct metrics_histogram histogram_of(const struct netobs_times *times)
{
	return (struct metrics_histogram){
		.by_time = times->classes,
		.n = TIME_BUCKETS,
		.shortest_us = TIMES_SHORTEST_US,
		.count = times->n,
		.sum_ns = times->sum_ns,
	};
}

/* @to: a free one of values->times, of which as many are taken as are needed */
static void keep_times(const struct netobs_times *times, struct netobs_times **to,
		       struct metrics_histogram *ret_histogram)
{
	if (!times)
		return;
	**to = *times;
	*ret_histogram = histogram_of((*to)++);
}

/* Copy times: flows are still counted, and all values of a format must be of one moment. */
static int keep_series_times(struct metrics_values *values)
{
	struct netobs_times *times;
	size_t n = 0;

	for (size_t i = 0; i < values->n_series; i++)
		n += !!values->series[i].row.rtt +
		     !!values->series[i].row.app_latency;
	if (!n)
		return 0;
	times = reallocarray(values->times, n, sizeof(*times));
	if (!times)
		return -ENOMEM;
	values->times = times;
	for (size_t i = 0; i < values->n_series; i++) {
		struct metrics_series *series = &values->series[i];

		keep_times(series->row.rtt, &times, &series->rtt);
		keep_times(series->row.app_latency, &times, &series->app_latency);
	}
	return 0;
}

/* Collect all series, since a sum over a part of them would look complete. */
static int collect_series(const struct metrics_source *source,
			  struct metrics_values *values)
{
	struct series_taker taker = { .values = values };

	values->n_series = 0;
	for (size_t i = 0; i < source->n_groups; i++) {
		taker.group = &source->groups[i];
		netobs_series_each(taker.group->series, take_series, &taker);
	}
	return taker.err ?: keep_series_times(values);
}

/* ---- The process ------------------------------------------------------------------ */

static uint64_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 3; /* ".", ".." and the directory's own */
}

/* @return the length of @path's contents; 0: it cannot be read */
static size_t read_text(const char *path, char *text, size_t size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, size - 1);

	text[len > 0 ? len : 0] = '\0';
	return len > 0 ? len : 0;
}

/* proc_pid_stat(5): the name of the process, which is in parentheses, may be anything. */
static void read_process_stat(struct metrics_process *process)
{
	const uint64_t tick_ms = 1000 / sysconf(_SC_CLK_TCK);
	unsigned long long user, system, start, size;
	long resident;
	char text[1024];
	const char *rest;

	read_text("/proc/self/stat", text, sizeof(text));
	rest = strrchr(text, ')');
	if (!rest ||
	    sscanf(rest,
		   ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu "
		   "%*d %*d %*d %*d %*d %*d %llu %llu %ld",
		   &user, &system, &start, &size, &resident) != 5)
		return;
	process->cpu_ms = (user + system) * tick_ms;
	if (!process->start_ms) /* clocks are set */
		process->start_ms = clock_ms(CLOCK_REALTIME) -
				    clock_ms(CLOCK_BOOTTIME) + start * tick_ms;
	process->virtual_bytes = size;
	process->resident_bytes = (uint64_t)resident * sysconf(_SC_PAGESIZE);
}

static void collect_process(struct metrics_process *process)
{
	struct rlimit limit;

	read_process_stat(process);
	process->fds = count_fds();
	if (!getrlimit(RLIMIT_NOFILE, &limit))
		process->max_fds = limit.rlim_cur;
}

static bool are_bpf_stats_enabled(void)
{
	char text[16];

	return read_text("/proc/sys/kernel/bpf_stats_enabled", text,
			 sizeof(text)) &&
	       *text == '1';
}

/* ---- Histograms ------------------------------------------------------------------- */

static void find_histograms(struct metrics_values *values)
{
	values->drains = (struct metrics_histogram){
		.by_time = values->engine.drains_by_time,
		.n = NETOBS_DRAIN_TIMES,
		.shortest_us = 64,
		.count = values->engine.drains,
		.sum_ns = values->engine.drain_ns,
	};
	values->rtt = histogram_of(&values->health.rtt);
	values->path_rtt = histogram_of(&values->health.path_rtt);
	values->response_time = histogram_of(&values->health.response_time);
	values->app_latency = histogram_of(&values->health.app_latency);
}

/* ---- All -------------------------------------------------------------------------- */

int metrics_collect(const struct metrics_source *source,
		    struct metrics_values *values)
{
	values->stats.sz = sizeof(values->stats);
	netobs_stats_get(source->ctx, &values->stats);
	values->engine.sz = sizeof(values->engine);
	netobs_engine_stats_get(source->ctx, &values->engine);
	values->connections.sz = sizeof(values->connections);
	netobs_connection_stats_get(source->ctx, &values->connections);
	values->health = source->health;
	values->sessions = source->sessions;
	if (source->drops)
		values->drops = *source->drops;
	values->trace = source->trace;
	find_histograms(values);
	values->interfaces = values->stats.interfaces;
	values->shadowed = values->stats.shadowed;
	values->programs = values->engine.programs;
	values->sampling = source->sampling ?: 1;
	values->errors = source->errors;
	values->warnings = source->warnings;
	values->bpf_stats_enabled = are_bpf_stats_enabled();
	collect_process(&values->process);
	collect_interfaces(source->ctx, values);
	free(values->sinks);
	values->n_sinks = sink_totals_sum(source->closed, source->outputs,
					  source->n_outputs, &values->sinks);
	collect_rules(source, values);
	collect_alerts(source, values);
	return collect_series(source, values);
}

void metrics_values_done(struct metrics_values *values)
{
	for (size_t i = 0; i < METRICS_INTERFACES; i++)
		free_series(&values->by_interface[i]);
	free(values->series);
	free(values->times);
	free(values->sinks);
	values->sinks = NULL;
	values->n_sinks = 0;
}
