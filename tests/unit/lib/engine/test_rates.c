// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Numbers and identifiers of rates, in a random sequence of lists and flows, compared with a
 * list of what may still be in use. NETOBS_TEST_SEED repeats a run.
 */
#include "lib_seed.h"
#include "lib_test.h"

#include "engine/tables.h"
#include "flows/flow_table.h"

enum { ROUNDS = 20000, LIST = 7, INTERVALS = 50, FLOWS = 300 };

/* What a number or an identifier means while something uses it. */
static struct rate meaning[RATES];

/* In user space. */
static struct {
	uint32_t id;
	struct rate rate;
} flows[FLOWS];

static uint32_t n_flows[RATE_IDS];

static bool is_same(const struct rate *one, const struct rate *other)
{
	return one->interval == other->interval && one->mode == other->mode;
}

static struct rate random_rate(void)
{
	return (struct rate){ 2 + test_below(INTERVALS), test_below(2) };
}

/* A flow goes, and one of the rates of now comes. */
static void turn_over_flows(const struct rates *rates, const struct rate *list,
			    uint32_t n)
{
	for (int i = 0; i < 20; i++) {
		uint32_t k = test_below(FLOWS);
		const struct rate *rate = &list[test_below(n)];

		n_flows[flows[k].id]--;
		flows[k].rate = *rate;
		flows[k].id = rates->id_of[rates_number(rates->numbers, rate)];
		n_flows[flows[k].id]++;
	}
}

static void assert_meanings(const struct rates *rates)
{
	for (uint32_t i = 0; i < RATES; i++)
		if (meaning[i].interval) {
			assert_true(is_same(&rates->numbers[i], &meaning[i]));
			assert_true(is_same(&rates->ids[rates->id_of[i]],
					    &meaning[i]));
		}
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_true(is_same(&rates->ids[flows[i].id], &flows[i].rate));
	assert_int_equal(rates->numbers[0].interval, 0);
	assert_int_equal(rates->ids[0].interval, 0);
}

TEST(a_rate_keeps_its_number_while_it_is_in_use)
{
	struct rate list[LIST];
	struct rates rates = { 0 };
	uint32_t new, kept = 0;

	n_flows[0] = FLOWS;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t n = 0, more = test_below(LIST);
		int err;

		do
			list[n++] = random_rate();
		while (n <= more);
		err = rates_take(&rates, list, n, n_flows, &new);
		assert_meanings(&rates);
		if (err) {
			assert_int_equal(err, -EBUSY);
			/* The earlier flows end, and all entries are read. */
			for (uint32_t i = 0; i < FLOWS; i++) {
				n_flows[flows[i].id]--;
				flows[i].id = 0;
				flows[i].rate = (struct rate){ 0 };
				n_flows[0]++;
			}
			rates_keep(&rates, list, 0);
			memset(meaning, 0, sizeof(meaning));
			assert_int_equal(
				rates_take(&rates, list, n, n_flows, &new), 0);
			kept++;
		}
		for (uint32_t i = 0; i < n; i++) {
			uint32_t number = rates_number(rates.numbers, &list[i]);

			assert_in_range(number, 1, RATES - 1);
			/* Only a new number has no meaning yet. */
			assert_true(new & 1U << number ||
				    is_same(&meaning[number], &list[i]));
			meaning[number] = list[i];
		}
		turn_over_flows(&rates, list, n);
		if (test_below(3) == 0) {
			rates_keep(&rates, list, n);
			for (uint32_t i = 1; i < RATES; i++)
				if (!rates.numbers[i].interval)
					memset(&meaning[i], 0,
					       sizeof(meaning[i]));
			for (uint32_t i = 0; i < n; i++)
				assert_in_range(rates_number(rates.numbers,
							     &list[i]),
						1, RATES - 1);
		}
		assert_meanings(&rates);
	}
	assert_true(kept > 0);
}

TEST(numbers_of_an_earlier_process_stay_what_they_were)
{
	const struct rate before[RATES] = {
		[3] = { 10, SAMPLE_FLOWS }, [15] = { 7, SAMPLE_PACKETS }
	};
	const struct rate now[] = { { 7, SAMPLE_PACKETS }, { 8, SAMPLE_PACKETS } };
	struct rates rates = { 0 };
	uint32_t new;

	rates_adopt(&rates, before);
	assert_false(rates.is_sampling);
	assert_int_equal(rates_take(&rates, now, 2, NULL, &new), 0);
	assert_true(rates.is_sampling);
	assert_int_equal(rates_number(rates.numbers, &before[3]), 3);
	assert_int_equal(rates_number(rates.numbers, &now[0]), 15);
	assert_int_equal(new, 1U << rates_number(rates.numbers, &now[1]));
	assert_true(rates_are_random(&rates, rates.id_of[15]));
	assert_false(rates_are_random(&rates, rates.id_of[3]));
	assert_false(rates_are_random(&rates, 0));
}

TEST(key_has_room_for_each_number_and_identifier)
{
	struct flow_key key;

	for (uint32_t i = 0; i < RATES; i++) {
		memset(&key, 0, sizeof(key));
		key.vlan = VLAN_PRESENT | VLAN_ID_MASK;
		key.outer_vlan = key.vlan;
		key.tunnel = TUNNEL_MAX - 1;
		((uint64_t *)&key)[5] |= key_rate_bits(i);
		assert_int_equal(key_rate(&key), i);
		assert_int_equal(key.tunnel, TUNNEL_MAX - 1);
		assert_int_equal(key.vlan & FLOW_TAG_MASK,
				 VLAN_PRESENT | VLAN_ID_MASK);
	}
	for (uint32_t i = 0; i < RATE_IDS; i++) {
		flow_key_set_rate_id(&key, i);
		assert_int_equal(flow_key_rate_id(&key), i);
		assert_int_equal(key.rate_high, 0);
		assert_int_equal(key.outer_vlan & FLOW_TAG_MASK,
				 VLAN_PRESENT | VLAN_ID_MASK);
	}
}
