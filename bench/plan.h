/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The cases that the options of a datapath benchmark ask for. */
#ifndef NETOBS_BENCH_PLAN_H
#define NETOBS_BENCH_PLAN_H

#include "config.h"
#include "results.h"

/**
 * Add a cell for each case and design: by flows, traffic and direction, then by design
 * and case, or with --live by case and design. Tables too large for a host that has
 * other things to do are left out, with a message.
 *
 * @return 0; -ENOENT, if there is no case here, or other -errno: reported
 */
int plan_make(const struct config *config, const struct runner *runner,
	      struct results *results);

/* What a spread must have room for. */
uint32_t plan_largest(const struct config *config);

#endif
