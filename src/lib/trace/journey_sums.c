// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include <netobs/journeys.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/util.h"

enum { FIRST_SAMPLES = 256 };

/* A journey, as far as sums need it. */
struct sample {
	uint64_t ns[NETOBS_JOURNEY_SERIES];
	uint32_t unknown; /* 1 << series */
};

struct direction {
	struct netobs_journey_sums sums;
	struct sample *samples;
	uint32_t n, capacity;
	struct sample longest;
	bool is_sorted;	   /* by total; then n_totals is known */
	uint32_t n_totals; /* samples that have ended */
};

struct netobs_journeys {
	struct direction directions[NETOBS_JOURNEY_DIRECTIONS];
	bool lacks_initiator; /* a journey has no known initiator: direction 0 may be either */
	uint64_t random;
};

int netobs_journeys_new(struct netobs_journeys **ret_journeys)
{
	struct netobs_journeys *journeys;

	if (!ret_journeys)
		return -EINVAL;
	journeys = calloc(1, sizeof(*journeys));
	if (!journeys)
		return -ENOMEM;
	*ret_journeys = journeys;
	return 0;
}

void netobs_journeys_free(struct netobs_journeys *journeys)
{
	if (!journeys)
		return;
	for (int i = 0; i < NETOBS_JOURNEY_DIRECTIONS; i++)
		free(journeys->directions[i].samples);
	free(journeys);
}

const char *netobs_journey_series_name(unsigned int series)
{
	if (series == NETOBS_JOURNEY_UNKNOWN)
		return "unknown";
	return series == NETOBS_JOURNEY_TOTAL ? "total" :
						netobs_journey_part_name(series);
}

/* ---- Adding -------------------------------------------------------------------------------- */

/* xorshift64: the choice of samples must be even, not secret. */
static uint64_t next_random(struct netobs_journeys *journeys)
{
	uint64_t x = journeys->random ? journeys->random : 88172645463325252ULL;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return journeys->random = x;
}

static struct sample make_sample(const struct netobs_journey *journey)
{
	const uint32_t ends = NETOBS_JOURNEY_HAS_READ | NETOBS_JOURNEY_HAS_ACKED;
	struct sample sample = { .unknown = journey->unknown_parts };

	memcpy(sample.ns, journey->part_ns, sizeof(journey->part_ns));
	sample.ns[NETOBS_JOURNEY_UNKNOWN] = journey->unknown_ns;
	sample.ns[NETOBS_JOURNEY_TOTAL] =
		(uint64_t)journey->end_ns - (uint64_t)journey->record.time_ns;
	if (!(journey->record.has & ends))
		sample.unknown |= 1U << NETOBS_JOURNEY_TOTAL;
	return sample;
}

static bool has_total(const struct sample *sample)
{
	return !(sample->unknown & 1U << NETOBS_JOURNEY_TOTAL);
}

static void add_series(struct direction *direction, const struct sample *sample)
{
	const uint64_t total_ns = sample->ns[NETOBS_JOURNEY_TOTAL];

	for (unsigned int i = 0; i < NETOBS_JOURNEY_SERIES; i++) {
		struct netobs_journey_time *time = &direction->sums.series[i];

		if (sample->unknown & 1U << i)
			continue;
		time->journeys++;
		time->sum_ns += sample->ns[i];
		time->max_ns = max_u64(time->max_ns, sample->ns[i]);
	}
	direction->sums.all_ns += total_ns;
	if (has_total(sample) &&
	    total_ns >= direction->longest.ns[NETOBS_JOURNEY_TOTAL])
		direction->longest = *sample;
}

/* If there is no more room, each journey so far has the same chance to be kept. */
static int keep_sample(struct netobs_journeys *journeys,
		       struct direction *direction, const struct sample *sample)
{
	uint64_t at = direction->n;

	direction->is_sorted = false;
	if (direction->n == NETOBS_JOURNEYS_KEPT_MAX) {
		at = next_random(journeys) % direction->sums.journeys;
		if (at < NETOBS_JOURNEYS_KEPT_MAX)
			direction->samples[at] = *sample;
		return 0;
	}
	if (!array_reserve(&direction->samples, direction->n, &direction->capacity,
			   sizeof(*direction->samples), FIRST_SAMPLES))
		return -ENOMEM;
	direction->samples[at] = *sample;
	direction->n++;
	return 0;
}

/* Steps are not needed. */
int netobs_journeys_add(struct netobs_journeys *journeys,
			const struct netobs_journey *journey)
{
	struct direction *direction;
	struct sample sample;

	if (!journeys || !journey ||
	    journey->record.type != NETOBS_RECORD_JOURNEY ||
	    journey->record.sz < offsetof(struct netobs_journey, steps))
		return -EINVAL;
	direction =
		&journeys->directions[journey->direction % NETOBS_JOURNEY_DIRECTIONS];
	sample = make_sample(journey);
	direction->sums.journeys++;
	direction->sums.complete += !journey->unknown_parts;
	direction->sums.bytes += journey->length;
	direction->sums.retransmitted += journey->n_attempts > 1;
	direction->sums.drops += journey->n_drops;
	if (!(journey->record.has & NETOBS_JOURNEY_HAS_INITIATOR))
		journeys->lacks_initiator = true;
	add_series(direction, &sample);
	return keep_sample(journeys, direction, &sample);
}

int netobs_journeys_get(const struct netobs_journeys *journeys,
			unsigned int direction,
			struct netobs_journey_sums *ret_sums)
{
	struct netobs_journey_sums sums;

	if (!journeys || direction >= NETOBS_JOURNEY_DIRECTIONS || !ret_sums)
		return -EINVAL;
	sums = journeys->directions[direction].sums;
	sums.kept = journeys->directions[direction].n;
	if (journeys->lacks_initiator)
		sums.name = direction ? "direction 1" : "direction 0";
	else
		sums.name = direction ? "server > client" : "client > server";
	return sized_fill(ret_sums, &sums, sizeof(sums));
}

/* ---- Percentiles --------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t *one = a, *two = b;

	return (*one > *two) - (*one < *two);
}

/* Journeys that have not ended come last. */
static int compare_totals(const void *a, const void *b)
{
	const struct sample *one = a, *two = b;

	if (has_total(one) != has_total(two))
		return has_total(one) ? -1 : 1;
	return compare_numbers(&one->ns[NETOBS_JOURNEY_TOTAL],
			       &two->ns[NETOBS_JOURNEY_TOTAL]);
}

/* The first of @n in order that has so many with it and before it. */
static uint32_t rank_of(uint32_t n, uint32_t per_mille)
{
	const uint64_t rank = ((uint64_t)n * per_mille + 999) / 1000;

	return rank ? (uint32_t)min_u64(rank, n) - 1 : 0;
}

int netobs_journeys_percentiles(const struct netobs_journeys *journeys,
				unsigned int direction, unsigned int series,
				const uint32_t *per_mille, uint32_t n,
				uint64_t *ret_ns)
{
	cleanup_free uint64_t *values = NULL;
	const struct direction *from;
	uint32_t n_values = 0;

	if (!journeys || direction >= NETOBS_JOURNEY_DIRECTIONS ||
	    series >= NETOBS_JOURNEY_SERIES || !per_mille || !ret_ns)
		return -EINVAL;
	from = &journeys->directions[direction];
	if (!from->n)
		return -ENODATA;
	values = calloc(from->n, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n; i++)
		if (!(from->samples[i].unknown & 1U << series))
			values[n_values++] = from->samples[i].ns[series];
	if (!n_values)
		return -ENODATA;
	qsort(values, n_values, sizeof(*values), compare_numbers);
	for (uint32_t i = 0; i < n; i++)
		ret_ns[i] = values[rank_of(n_values, per_mille[i])];
	return 0;
}

static void sort_samples(struct direction *direction)
{
	if (direction->is_sorted || !direction->n)
		return;
	qsort(direction->samples, direction->n, sizeof(*direction->samples),
	      compare_totals);
	direction->n_totals = 0;
	while (direction->n_totals < direction->n &&
	       has_total(&direction->samples[direction->n_totals]))
		direction->n_totals++;
	direction->is_sorted = true;
}

int netobs_journeys_ranked(struct netobs_journeys *journeys,
			   unsigned int direction, uint32_t per_mille,
			   uint64_t ret_ns[NETOBS_JOURNEY_SERIES])
{
	const struct sample *sample;
	struct direction *from;

	if (!journeys || direction >= NETOBS_JOURNEY_DIRECTIONS || !ret_ns)
		return -EINVAL;
	from = &journeys->directions[direction];
	if (!from->n)
		return -ENODATA;
	sort_samples(from);
	/* If no end of a journey was seen, use all as far as they got. */
	sample = &from->samples[rank_of(from->n_totals ?: from->n, per_mille)];
	if (from->n_totals && per_mille >= 1000)
		sample = &from->longest;
	memcpy(ret_ns, sample->ns, sizeof(sample->ns));
	return 0;
}
