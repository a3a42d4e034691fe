/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What became, at each interface, of packets that did not reach the tables of flows. */
#ifndef NETOBS_ENGINE_OUTCOMES_H
#define NETOBS_ENGINE_OUTCOMES_H

#include "store.h"

/**
 * Receives what a generation has counted on one CPU.
 *
 * @param ifindex  0: of interfaces that found no slot
 * @param counts   [enum direction][enum outcome_kind, those that programs count]
 * @return whether the interface is there; else its slot is another's later
 */
typedef bool outcomes_fn(void *ctx, uint16_t netns, uint32_t ifindex,
			 const struct count counts[2][OUTCOMES_COUNTED]);

/**
 * Take all that a generation has counted, which is at rest. So whatever is in the map has
 * not been taken, also after a restart.
 *
 * @return 0, or -errno: a later call takes the rest
 */
int outcomes_take(const struct store *store, uint32_t generation,
		  outcomes_fn *take, void *ctx);

#endif
