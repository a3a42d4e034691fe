/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The results as a chart, drawn by gnuplot. */
#ifndef NETOBS_BENCH_PLOT_H
#define NETOBS_BENCH_PLOT_H

#include "results.h"

/* Whether there is a gnuplot; if not, it says what to install. */
int plot_check(void);

/* Write an SVG to @fd. Returns 0 or -errno. */
int plot_draw(const struct results *results, int fd);

#endif
