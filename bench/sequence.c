/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "sequence.h"

#include "base/util.h"

#include <errno.h>
#include <math.h>

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t sequence_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* 32 random bits to a number below @limit. */
static uint32_t scale_random(uint32_t random, uint32_t limit)
{
	return (uint64_t)random * limit >> 32;
}

void sequence_permute(uint32_t *ret_numbers, uint32_t flows, uint64_t seed)
{
	for (uint32_t i = 0; i < flows; i++) {
		uint32_t other =
			scale_random(sequence_random(&seed) >> 32, i + 1);

		ret_numbers[i] = ret_numbers[other];
		ret_numbers[other] = i;
	}
}

void sequence_uniform(uint32_t *ret_numbers, size_t n, uint32_t flows,
		      uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		ret_numbers[i] =
			scale_random(sequence_random(&seed) >> 32, flows);
}

/*
 * Walker's alias method, tables as by Vose (1991): a rank is picked uniformly,
 * and kept with a probability of its own, else its alias is taken.
 */
struct alias {
	double keep;
	uint32_t other;
};

static double weigh_ranks(struct alias *table, uint32_t flows, double exponent)
{
	double sum = 0;

	for (uint32_t i = 0; i < flows; i++) {
		table[i] = (struct alias){ pow(i + 1.0, -exponent), i };
		sum += table[i].keep;
	}
	return sum;
}

/*
 * Weights fall with the rank. Those under the average are filled up, from the
 * last one on, with what the first ones have too much.
 */
static void balance_ranks(struct alias *table, uint32_t flows, double sum)
{
	uint32_t donor = 0, last = flows - 1;

	for (uint32_t i = 0; i < flows; i++)
		table[i].keep *= flows / sum;
	while (donor < last) {
		table[last].other = donor;
		table[donor].keep -= 1 - table[last].keep;
		last--;
		/* One that gave too much is filled up by the next. */
		while (donor < last && table[donor].keep < 1) {
			table[donor].other = donor + 1;
			table[donor + 1].keep -= 1 - table[donor].keep;
			donor++;
		}
	}
}

int sequence_zipf(uint32_t *ret_numbers, size_t n, const uint32_t *ranking,
		  uint32_t flows, double exponent, uint64_t seed)
{
	cleanup_free struct alias *table = calloc(flows, sizeof(*table));

	if (!table)
		return -ENOMEM;
	balance_ranks(table, flows, weigh_ranks(table, flows, exponent));
	for (size_t i = 0; i < n; i++) {
		uint64_t random = sequence_random(&seed);
		uint32_t rank = scale_random(random >> 32, flows);
		double chance = (uint32_t)random * 0x1p-32;

		if (chance >= table[rank].keep)
			rank = table[rank].other;
		ret_numbers[i] = ranking[rank];
	}
	return 0;
}
