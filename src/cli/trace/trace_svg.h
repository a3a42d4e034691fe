/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A picture for a report: for each direction, bars of the journeys whose time is the median, the
 * 90th and 99th percentile, and the longest. A bar consists of the parts of that journey, and all
 * bars are as wide: what is compared are shares. Details are in tooltips.
 */
#ifndef NETOBS_CLI_TRACE_TRACE_SVG_H
#define NETOBS_CLI_TRACE_TRACE_SVG_H

#include <stdio.h>

#include "trace_summary.h"

/** @param title any text */
void trace_svg_print(FILE *file, struct trace_summary *summary,
		     const char *title);

#endif
