/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Which cases the datapath benchmark measures. */
#ifndef NETOBS_BENCH_PLAN_H
#define NETOBS_BENCH_PLAN_H

#include "config.h"
#include "results.h"

/*
 * Add a cell for each case that is asked for, by flows, then design. Tables too
 * large for a host that has other things to do are left out, with a message.
 */
int plan_make(const struct config *config, const struct runner *runner,
	      struct results *results);

#endif
