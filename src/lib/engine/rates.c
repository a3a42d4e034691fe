/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "rates.h"

#include "base/util.h"
#include "filter/filter.h"

#include <errno.h>
#include <string.h>

static uint32_t find_rate(const struct rate *table, uint32_t n,
			  const struct rate *rate)
{
	uint32_t i = 0;

	while (rate->interval && i < n && !rate_is_same(&table[i], rate))
		i++;
	return i;
}

uint32_t rates_number(const struct rate numbers[RATES], const struct rate *rate)
{
	return find_rate(numbers, RATES, rate);
}

static bool has_number(const struct rates *rates, uint32_t id)
{
	for (uint32_t i = 1; i < RATES; i++)
		if (rates->numbers[i].interval && rates->id_of[i] == id)
			return true;
	return false;
}

/* @return RATE_IDS: all are in use */
static uint32_t take_id(struct rates *rates, const struct rate *rate,
			const uint32_t *n_flows)
{
	uint32_t id = find_rate(rates->ids, RATE_IDS, rate);

	if (id < RATE_IDS)
		return id;
	for (id = 1; id < RATE_IDS; id++)
		if (!has_number(rates, id) && !(n_flows && n_flows[id]))
			break;
	if (id < RATE_IDS)
		rates->ids[id] = *rate;
	return id;
}

/* @return RATES: there is none */
static uint32_t find_free_number(const struct rates *rates)
{
	uint32_t number = 1;

	while (number < RATES && rates->numbers[number].interval)
		number++;
	return number;
}

static bool set_number(struct rates *rates, uint32_t number,
		       const struct rate *rate, const uint32_t *n_flows)
{
	uint32_t id = take_id(rates, rate, n_flows);

	if (id == RATE_IDS)
		return false;
	rates->numbers[number] = *rate;
	rates->id_of[number] = (uint8_t)id;
	return true;
}

void rates_adopt(struct rates *rates, const struct rate numbers[RATES])
{
	for (uint32_t i = 1; i < RATES; i++)
		if (numbers[i].interval)
			set_number(rates, i, &numbers[i], NULL);
}

int rates_take(struct rates *rates, const struct rate *list, uint32_t n,
	       const uint32_t n_flows[RATE_IDS], uint32_t *ret_new)
{
	struct rates taken = *rates;
	uint32_t new = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t number = rates_number(taken.numbers, &list[i]);

		taken.is_sampling |= list[i].interval != 0;
		if (number < RATES)
			continue;
		number = find_free_number(&taken);
		if (number == RATES ||
		    !set_number(&taken, number, &list[i], n_flows))
			return -EBUSY;
		new |= 1U << number;
	}
	*rates = taken;
	*ret_new = new;
	return 0;
}

void rates_keep(struct rates *rates, const struct rate *list, uint32_t n)
{
	for (uint32_t i = 1; i < RATES; i++)
		if (find_rate(list, n, &rates->numbers[i]) == n)
			rates->numbers[i] = (struct rate){ 0 };
}
