/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* netobsctl bench export: what it costs to send records through sinks. */
#ifndef NETOBS_BENCH_EXPORT_H
#define NETOBS_BENCH_EXPORT_H

#include "config.h"

/* Measure and print. Returns 0 or -errno, after a message. */
int export_run(const struct config *config);

#endif
