/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "store.h"

#include "filter/filter.h"
#include "pinned.h"

#include <string.h>

/* @return how many there are */
static uint32_t rates_of(const struct filter *filter, const struct rate *rate,
			 struct rate ret_rates[FILTER_RULES_MAX + 1])
{
	if (filter)
		return filter_rates(filter, ret_rates);
	ret_rates[0] = *rate;
	return rate->interval != 0;
}

static void note_rates(const struct store *store)
{
	const struct pinned *pinned = store->options.pinned;

	if (pinned && pinned->state)
		memcpy(pinned->state->rates, store->rates.numbers,
		       sizeof(pinned->state->rates));
}

/* Clear samplers of new numbers, which no program uses: they may be of a longer interval. */
static void reset_samplers(struct store *store, uint32_t numbers)
{
	for (uint32_t cpu = 0; store->cpus && cpu < store->n_cpus; cpu++)
		for (uint32_t i = 0; i < RATES; i++)
			if (numbers & 1U << i)
				store->cpus[cpu].samplers[i] =
					(struct sampler){ 0 };
}

int store_number_rates(const struct store *store, struct rates *rates,
		       uint32_t *ret_new)
{
	struct rate list[FILTER_RULES_MAX + 1];
	uint32_t n = rates_of(store->options.filter, &store->options.rate, list);

	return rates_take(rates, list, n, NULL, ret_new);
}

int store_take_rates(struct store *store, const struct filter *filter,
		     const struct rate *rate, const uint32_t n_flows[RATE_IDS])
{
	struct rate list[FILTER_RULES_MAX + 1];
	uint32_t new, n = rates_of(filter, rate, list);
	int err = rates_take(&store->rates, list, n, n_flows, &new);

	if (err)
		return err;
	reset_samplers(store, new);
	note_rates(store);
	return 0;
}

void store_keep_rates(struct store *store, const struct filter *filter,
		      const struct rate *rate)
{
	struct rate list[FILTER_RULES_MAX + 1];

	rates_keep(&store->rates, list, rates_of(filter, rate, list));
	note_rates(store);
}
