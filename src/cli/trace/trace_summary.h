/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Journeys of a trace, summed up: how long each part took, by direction. Percentiles are exact as
 * long as there are at most TRACE_SAMPLES_MAX journeys of a direction; of more, they are those of
 * as many that are chosen at random, each with the same chance. Counts, sums and maxima are always
 * those of all journeys.
 */
#ifndef NETOBS_CLI_TRACE_TRACE_SUMMARY_H
#define NETOBS_CLI_TRACE_TRACE_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <netobs/alert.h>
#include <netobs/trace.h>

/* ---- Journeys and events of a trace, a line of text for each --------------------------- */

enum { TRACE_LINE_MAX = 768 };

/**
 * "12:34:56.789012345 10.0.0.1:40000 > 10.0.0.2:80 +0 200 B in 61.2 us: tcp 19.0 us, ...;
 * curl[1234] > nginx[80]". It has printable ASCII only.
 */
void trace_line_journey(char buf[TRACE_LINE_MAX],
			const struct netobs_journey *journey);

/** "12:34:56.789012345 socket send 10.0.0.1:40000 > 10.0.0.2:80 +0 200 B cpu 1 curl[1234]" */
void trace_line_event(char buf[TRACE_LINE_MAX],
		      const struct netobs_trace_event *event);

/** "12:34:56.789012345 10.0.0.1:40000 > 10.0.0.2:80 alert rtt > 50ms" */
void trace_line_alert(char buf[TRACE_LINE_MAX], const struct netobs_alert *alert);

/**
 * Break a line of the above where it is wider than @columns, behind a comma or a semicolon if
 * possible. Further lines are indented.
 *
 * @param columns  0: any
 */
void trace_line_fold(char *buf, size_t size, const char *line, uint32_t columns);

/* ---- Trace summary --------------------------------------------------------------------- */

enum {
	TRACE_DIRECTIONS = 2,
	TRACE_SAMPLES_MAX = 100000,
	/* Series: enum netobs_journey_part, time in no part, and the total. */
	TRACE_UNKNOWN = NETOBS_JOURNEY_PARTS,
	TRACE_TOTAL,
	TRACE_SERIES
};

/* A journey, as far as sums need it. */
struct trace_sample {
	uint64_t ns[TRACE_SERIES];
	uint32_t unknown; /* 1 << series */
};

struct trace_series {
	uint64_t n; /* journeys of which it is known */
	uint64_t sum_ns;
	uint64_t max_ns;
};

struct trace_direction {
	struct trace_series series[TRACE_SERIES];
	uint64_t journeys, complete, bytes, retransmitted, drops;
	uint64_t all_ns; /* sum over all journeys, also those that have not ended */
	struct trace_sample *samples;
	uint32_t n, capacity;
	struct trace_sample longest;
	bool is_sorted;	   /* by total; then n_totals is known */
	uint32_t n_totals; /* samples that have ended */
};

struct trace_summary {
	struct trace_direction directions[TRACE_DIRECTIONS];
	bool lacks_initiator; /* a journey has no known initiator: direction 0 may be either */
	bool is_out_of_memory;
	uint64_t random;
};

void trace_summary_add(struct trace_summary *summary,
		       const struct netobs_journey *journey);

/** "client > server"; "direction 0", where that is not known. */
const char *trace_summary_name(const struct trace_summary *summary,
			       unsigned int direction);

/**
 * The percentiles of a series, by rank: the value that @per_mille[i] of the journeys do not exceed.
 *
 * @param ret_ns  as many as there are in @per_mille
 * @return 0; -ENODATA: no journey has this part; -ENOMEM
 */
int trace_summary_percentiles(const struct trace_direction *direction,
			      unsigned int series, const uint32_t *per_mille,
			      uint32_t n, uint64_t *ret_ns);

/** "tcp", "unknown", "total" */
const char *trace_summary_series_name(unsigned int series);

/** The journey whose total has that rank, of those that have ended, if some have; NULL: none. */
const struct trace_sample *trace_summary_ranked(struct trace_direction *direction,
						uint32_t per_mille);

/** A table on stdout. @param width of the line, at most; 0: there is no limit */
void trace_summary_print(const struct trace_summary *summary, uint32_t width);

/** Print the summary as an object of JSON, and a newline, to stdout. */
void trace_summary_print_json(const struct trace_summary *summary);

void trace_summary_clear(struct trace_summary *summary);

/* ---- Trace svg ------------------------------------------------------------------------- */

/*
 * A picture for a report: for each direction, bars of the journeys whose time is the median, the
 * 90th and 99th percentile, and the longest. A bar consists of the parts of that journey, and all
 * bars are as wide: what is compared are shares. Details are in tooltips.
 */

/** @param title any text */
void trace_svg_print(FILE *file, struct trace_summary *summary,
		     const char *title);

#endif
