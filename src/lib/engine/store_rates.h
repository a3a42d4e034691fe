/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The sampling rates of a store's programs: their numbers, and the samplers of each CPU. */
#ifndef NETOBS_ENGINE_STORE_RATES_H
#define NETOBS_ENGINE_STORE_RATES_H

#include "store_state.h"

/**
 * Give the rates of programs that will be loaded numbers. Those of the options have them.
 *
 * @param filter   NULL: packets are sampled at @rate
 * @param n_flows  as for rates_take()
 * @return 0; -EBUSY: too few are free
 */
int store_take_rates(struct store *store, const struct filter *filter,
		     const struct rate *rate, const uint32_t n_flows[RATE_IDS]);

/* Free all rates but those of @filter or @rate: see rates_keep(). */
void store_keep_rates(struct store *store, const struct filter *filter,
		      const struct rate *rate);

/** Number in @rates the rates that the options of @store name. @return as rates_take() */
int store_number_rates(const struct store *store, struct rates *rates,
		       uint32_t *ret_new);

#endif
