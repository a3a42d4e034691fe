/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The sums of flows and connections in a series, and histograms of their times. */
#ifndef NETOBS_GROUP_SERIES_SUM_H
#define NETOBS_GROUP_SERIES_SUM_H

#include <stdbool.h>

#include <netobs/series.h>

/* The sums of an interval. */
struct series_sum {
	struct netobs_group_sum flows;
	uint64_t connections, connections_failed;
	int64_t first_end_ns, last_end_ns; /* of the connections */
};

/* The sums that one flow, or one connection, adds. */
struct series_event {
	struct series_sum sum;
	bool has_rtt, has_app_latency; /* there is a new sample */
	uint64_t rtt_ns, app_latency_ns;
};

struct series_event series_event_of_flow(const struct netobs_flow *flow);

/** @session: it has ended */
struct series_event series_event_of_session(const struct netobs_session *session);

void series_sum_add(struct series_sum *sum, const struct series_sum *more);

static inline bool series_sum_is_empty(const struct series_sum *sum)
{
	return !sum->flows.flows && !sum->connections;
}

/* ---- Histograms: one after the other, as bits of enum netobs_series_histogram choose ---- */

static inline size_t series_times_count(uint32_t histograms)
{
	return (size_t)__builtin_popcount(histograms);
}

/** @return the histogram of @bit; NULL: there is none */
static inline struct netobs_times *
series_times_at(struct netobs_times *times, uint32_t histograms, uint32_t bit)
{
	return histograms & bit ?
		       times + series_times_count(histograms & (bit - 1)) :
		       NULL;
}

void series_times_add(struct netobs_times *times, uint32_t histograms,
		      const struct series_event *event);

/* ---- Rows --------------------------------------------------------------------------- */

/** @times: of the row */
void series_row_init(struct netobs_series_row *row, uint32_t kind,
		     struct netobs_times *times, uint32_t histograms);

void series_row_add(struct netobs_series_row *row, const struct series_sum *sum);

/** Add all counters of @more. */
void series_row_join(struct netobs_series_row *row,
		     const struct netobs_series_row *more);

#endif
