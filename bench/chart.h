/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Draws the results of datapath as SVG: by netobs-chart, the program beside this one. */
#ifndef NETOBS_BENCH_CHART_H
#define NETOBS_BENCH_CHART_H

#include "report.h"

/* Whether a chart can be drawn; if not, it names the package to install. */
int chart_check(void);

/* Write an SVG to @fd. Returns 0 or -errno. */
int chart_draw(const struct report *report, int fd);

#endif
