/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* netobsctl bench datapath: what a packet costs. */
#ifndef NETOBS_BENCH_DATAPATH_H
#define NETOBS_BENCH_DATAPATH_H

#include "config.h"
#include "results.h"

/* Measure what is asked for. Returns 0 or -errno, after a message. */
int datapath_run(const struct config *config, struct results *ret_results);

#endif
