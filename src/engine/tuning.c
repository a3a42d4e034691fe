// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "tuning.h"

#include "bpf/types.h"
#include "base/util.h"

enum {
	SMALL = 1 << 16, /* slots up to which a table is small */
	GROWTH = 3, /* times what there is: few steps, should it be a burst */
	/*
	 * To clear the 2112 bytes of a bucket where the host of a virtual machine has to
	 * find the memory first; half a microsecond where it is there already.
	 */
	BUCKET_NS = 8000,
};

static uint64_t slots_of(uint32_t n_buckets)
{
	return (uint64_t)n_buckets * BUCKET_SLOTS;
}

static uint64_t round_up(uint64_t n_buckets)
{
	return (n_buckets + TUNING_BUCKETS_UNIT - 1) / TUNING_BUCKETS_UNIT *
	       TUNING_BUCKETS_UNIT;
}

static uint64_t round_down(uint64_t n_buckets)
{
	return n_buckets / TUNING_BUCKETS_UNIT * TUNING_BUCKETS_UNIT;
}

/* Buckets that @flows fill to four fifths. */
static uint64_t buckets_for(uint64_t flows)
{
	return round_up(flows / 4 * 5 / BUCKET_SLOTS + 1);
}

void tuning_init(struct tuning *tuning, uint64_t max_flows, uint64_t max_bytes)
{
	uint64_t buckets = buckets_for(max_flows);
	uint64_t affordable =
		round_down(max_bytes / GENERATIONS / sizeof(struct flow_bucket));

	if (max_bytes)
		buckets = min_u64(buckets, affordable);
	*tuning = (struct tuning){
		.max_buckets = min_u64(max_u64(buckets, TUNING_BUCKETS_UNIT),
				       UINT32_MAX / TUNING_BUCKETS_UNIT *
					       TUNING_BUCKETS_UNIT),
	};
}

void tuning_note(struct tuning *tuning, uint64_t flows)
{
	tuning->peak = max_u64(flows, tuning->peak - tuning->peak / 4);
}

void tuning_expect(struct tuning *tuning, uint64_t flows)
{
	tuning->peak = max_u64(flows, tuning->peak);
}

/* A twentieth more than usual, between one half and 0.84 of the table. */
uint64_t tuning_watermark(const struct tuning *tuning, uint32_t n_buckets)
{
	uint64_t slots = slots_of(n_buckets);

	return min_u64(max_u64(tuning->peak / 20 * 21, slots / 2),
		       slots / 25 * 21);
}

uint64_t tuning_meanwhile(uint32_t n_buckets, uint64_t flows_per_s)
{
	return n_buckets * (uint64_t)BUCKET_NS / 1000 * flows_per_s / 1000000;
}

uint64_t tuning_next_watermark(uint32_t n_buckets, uint64_t meanwhile)
{
	uint64_t slots = slots_of(n_buckets), most = slots / 25 * 21;

	return min_u64(slots / 5 * 3,
		       max_u64(most - min_u64(most, meanwhile), slots / 3));
}

uint32_t tuning_fit(const struct tuning *tuning, uint32_t n_buckets)
{
	uint64_t roomy = min_u64(tuning->peak / 2 * 5, SMALL) / BUCKET_SLOTS;
	uint64_t best = max_u64(buckets_for(tuning->peak), round_up(roomy));
	bool is_small = !n_buckets || slots_of(n_buckets) / 5 * 4 < tuning->peak;

	best = min_u64(max_u64(best, TUNING_BUCKETS_MIN), tuning->max_buckets);
	if (is_small || best == TUNING_BUCKETS_MIN)
		return best;
	/* Small changes of the traffic change nothing. */
	return n_buckets / 4 * 3 >= best ? best : n_buckets;
}

uint32_t tuning_grow(const struct tuning *tuning, uint32_t n_buckets)
{
	uint32_t room =
		tuning->max_buckets - min_u64(n_buckets, tuning->max_buckets);

	/* All new flows go to what is added: little would be no help. */
	if (room < n_buckets / 8)
		return 0;
	return min_u64((uint64_t)n_buckets * GROWTH, room);
}
