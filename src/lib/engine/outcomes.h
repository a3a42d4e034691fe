/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Counters of packets at each interface that did not reach the tables of flows, by outcome. */
#ifndef NETOBS_ENGINE_OUTCOMES_H
#define NETOBS_ENGINE_OUTCOMES_H

#include "store.h"

/**
 * Receives the counters of a generation on one CPU.
 *
 * @param ifindex  0: interfaces without a slot
 * @param counts   [enum direction][enum outcome_kind, up to OUTCOMES_COUNTED]
 * @return whether the interface exists; if not, its slot becomes free
 */
typedef bool outcomes_fn(void *ctx, uint16_t netns, uint32_t ifindex,
			 const struct count counts[2][OUTCOMES_COUNTED]);

/**
 * Take and clear the counters of a generation at rest. Counters that are in the map have not been
 * taken, also after a restart.
 *
 * @return 0, or -errno: a later call takes the rest
 */
int outcomes_take(const struct store *store, uint32_t generation,
		  outcomes_fn *take, void *ctx);

#endif
