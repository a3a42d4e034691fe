/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* netobsctl bench drain: what it costs to turn the kernel's table into records. */
#ifndef NETOBS_BENCH_DRAIN_H
#define NETOBS_BENCH_DRAIN_H

#include "config.h"

/* Measure and print. Returns 0 or -errno, after a message. */
int drain_run(const struct config *config);

#endif
