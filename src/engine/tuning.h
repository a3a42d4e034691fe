/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * How large the shared tables are to be, from how many flows came. Pure.
 *
 * When a table is 0.85 full, a flow in a million has found no room (table.h).
 * Tables are made so that four fifths are used; small ones two fifths, which is
 * faster and costs little.
 */
#ifndef NETOBS_ENGINE_TUNING_H
#define NETOBS_ENGINE_TUNING_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Sizes are multiples: of pages of 4 KiB as well, so that none is wasted. */
	TUNING_BUCKETS_UNIT = 64,
	/* What an idle host has, in each generation: 4.1 MiB. */
	TUNING_BUCKETS_MIN = 2048,
};

struct tuning {
	uint32_t max_buckets; /* of a generation */
	uint64_t peak; /* flows in a generation; what was long ago fades */
};

/* At most @max_flows in a generation, at most @max_bytes in both. */
void tuning_init(struct tuning *tuning, uint64_t max_flows, uint64_t max_bytes);

/* @flows were entered into the generation that ended. */
void tuning_note(struct tuning *tuning, uint64_t flows);

/* So many are in the generation that is about to end. */
void tuning_expect(struct tuning *tuning, uint64_t flows);

/* At how many flows in a generation's first table to ask for a second one. */
uint64_t tuning_watermark(const struct tuning *tuning, uint32_t n_buckets);

/* How many come while a table of @n_buckets is made, at worst. */
uint64_t tuning_meanwhile(uint32_t n_buckets, uint64_t flows_per_s);

/* The same for what was added: the next must be there when this one is full. */
uint64_t tuning_next_watermark(uint32_t n_buckets, uint64_t meanwhile);

/* What to begin the next interval with, instead of @n_buckets; 0: nothing yet. */
uint32_t tuning_fit(const struct tuning *tuning, uint32_t n_buckets);

/*
 * What to add to a generation's @n_buckets, when they fill up before the
 * interval ends. 0: nothing, the cap is reached.
 */
uint32_t tuning_grow(const struct tuning *tuning, uint32_t n_buckets);

#endif
