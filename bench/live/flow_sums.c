/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flow_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_PLACES = 4096 };

uint64_t packet_tuple_hash(const struct packet_tuple *tuple)
{
	uint64_t words[2], mixed;

	_Static_assert(sizeof(words) == sizeof(*tuple), "no padding");
	memcpy(words, tuple, sizeof(words));
	mixed = (words[0] ^ words[1] * 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
	return mixed ^ mixed >> 32;
}

/* The flow's place, or the free one where it belongs. */
static struct flow_sum *find_sum(const struct flow_sums *sums,
				 const struct packet_tuple *tuple)
{
	uint64_t i = packet_tuple_hash(tuple);

	for (;; i++) {
		struct flow_sum *sum = &sums->places[i & (sums->n_places - 1)];

		if (!sum->packets || !memcmp(&sum->tuple, tuple, sizeof(*tuple)))
			return sum;
	}
}

static int grow_table(struct flow_sums *sums)
{
	struct flow_sums larger = *sums;

	larger.n_places *= 2;
	larger.places = calloc(larger.n_places, sizeof(*larger.places));
	if (!larger.places)
		return -ENOMEM;
	for (uint64_t i = 0; i < sums->n_places; i++)
		if (sums->places[i].packets)
			*find_sum(&larger, &sums->places[i].tuple) =
				sums->places[i];
	free(sums->places);
	*sums = larger;
	return 0;
}

int flow_sums_init(struct flow_sums *sums)
{
	*sums = (struct flow_sums){ .n_places = FIRST_PLACES };
	sums->places = calloc(sums->n_places, sizeof(*sums->places));
	return sums->places ? 0 : -ENOMEM;
}

void flow_sums_free(struct flow_sums *sums)
{
	free(sums->places);
}

int flow_sums_add(struct flow_sums *sums, const struct packet_sample *sample)
{
	struct flow_sum *sum = find_sum(sums, &sample->tuple);

	if (!sum->packets) {
		if (sums->n_flows * 2 >= sums->n_places) {
			int err = grow_table(sums);

			if (err)
				return err;
			sum = find_sum(sums, &sample->tuple);
		}
		sum->tuple = sample->tuple;
		sum->first_ns = sample->time_ns;
		sums->n_flows++;
	}
	sum->packets += sample->packets;
	sum->bytes += sample->bytes;
	sum->last_ns = sample->time_ns;
	sums->packets += sample->packets;
	sums->bytes += sample->bytes;
	return 0;
}
