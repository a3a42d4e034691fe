/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Records of a trace as lines of text, and the sums of its journeys as a table, JSON and a picture. */
#ifndef NETOBS_CLI_TRACE_TRACE_SUMMARY_H
#define NETOBS_CLI_TRACE_TRACE_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <netobs/alert.h>
#include <netobs/journeys.h>
#include <netobs/turn.h>

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

/** "12:34:56.789012345 10.0.0.1:40000 > 10.0.0.2:80 +0 200 B message in 61.2 us, written 9.0 us, ...; curl[1234]" */
void trace_line_turn(char buf[TRACE_LINE_MAX], const struct netobs_turn *turn);

/** "12:34:56.789012345 10.0.0.1:40000 > 10.0.0.2:80 alert rtt > 50ms" */
void trace_line_alert(char buf[TRACE_LINE_MAX], const struct netobs_alert *alert);

/* ---- Sums of journeys ------------------------------------------------------------------ */

/** A table on stdout. @param width of its lines, at most; 0: there is no limit */
void trace_summary_print(const struct netobs_journeys *journeys, uint32_t width);

/** Print the sums as an object of JSON, and a newline, to stdout. */
void trace_summary_print_json(const struct netobs_journeys *journeys);

/* ---- Trace svg ------------------------------------------------------------------------- */

/*
 * A picture for a report: for each direction, bars of the journeys whose time is the median, the
 * 90th and 99th percentile, and the longest. A bar consists of the parts of that journey, and all
 * bars are as wide: what is compared are shares. Details are in tooltips.
 */

/** @param title any text */
void trace_svg_print(FILE *file, struct netobs_journeys *journeys,
		     const char *title);

#endif
