// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* How the shared tables follow the number of flows. */
#include "lib_test.h"
#include "engine/tuning.h"

#include "bpf/types.h"

enum { DEFAULT_FLOWS = 1 << 20, MIB = 1 << 20 };

static const uint64_t bucket_bytes = sizeof(struct flow_bucket);

static uint64_t slots_of(uint32_t n_buckets)
{
	return (uint64_t)n_buckets * BUCKET_SLOTS;
}

/* Both generations, in turn, as tables.c has them. */
struct host {
	struct tuning tuning;
	uint32_t n_buckets[GENERATIONS];
	uint32_t intervals;
};

static struct host start(uint64_t max_flows, uint64_t max_bytes)
{
	struct host host = { .intervals = 0 };

	tuning_init(&host.tuning, max_flows, max_bytes);
	for (int g = 0; g < GENERATIONS; g++)
		host.n_buckets[g] = tuning_fit(&host.tuning, 0);
	return host;
}

static uint64_t bytes_of(const struct host *host)
{
	return ((uint64_t)host->n_buckets[0] + host->n_buckets[1]) * bucket_bytes;
}

/* @flows come, and the generation that saw them is drained. */
static void interval(struct host *host, uint64_t flows)
{
	uint32_t *n_buckets = &host->n_buckets[host->intervals++ % GENERATIONS];

	tuning_note(&host->tuning, flows);
	*n_buckets = tuning_fit(&host->tuning, *n_buckets);
	assert_int_equal(*n_buckets % TUNING_BUCKETS_UNIT, 0);
	assert_in_range(*n_buckets, TUNING_BUCKETS_UNIT,
			host->tuning.max_buckets);
}

static void intervals(struct host *host, uint32_t n, uint64_t flows)
{
	while (n--)
		interval(host, flows);
}

static bool is_smallest(const struct host *host)
{
	return host->n_buckets[0] == TUNING_BUCKETS_MIN &&
	       host->n_buckets[1] == TUNING_BUCKETS_MIN;
}

static void tables_are_small_at_the_start(void **state)
{
	struct host host = start(DEFAULT_FLOWS, 0);

	(void)state;
	assert_true(is_smallest(&host));
	assert_true(bytes_of(&host) < 9 * MIB);
	intervals(&host, 4, 0);
	assert_true(is_smallest(&host));
	intervals(&host, 4, 1000);
	assert_true(is_smallest(&host));
}

static void tables_fit_a_steady_load(void **state)
{
	(void)state;
	for (uint64_t flows = 1; flows < DEFAULT_FLOWS; flows += flows / 50 + 1) {
		struct host host = start(DEFAULT_FLOWS, 0), before;

		intervals(&host, 2, flows);
		before = host;
		for (int i = 0; i < 20; i++) {
			interval(&host, flows);
			assert_int_equal(host.n_buckets[0], before.n_buckets[0]);
			assert_int_equal(host.n_buckets[1], before.n_buckets[1]);
		}
		/* Four fifths full at most, and if large not below six tenths. */
		assert_true(slots_of(host.n_buckets[0]) * 4 / 5 >= flows);
		assert_true(host.n_buckets[0] <= 4096 ||
			    slots_of(host.n_buckets[0]) * 6 / 10 <= flows);
	}
}

static void watermark_is_above_a_steady_load(void **state)
{
	(void)state;
	for (uint64_t flows = 1; flows < DEFAULT_FLOWS; flows += flows / 50 + 1) {
		struct host host = start(DEFAULT_FLOWS, 0);
		uint64_t slots, watermark;

		intervals(&host, 2, flows);
		slots = slots_of(host.n_buckets[0]);
		watermark = tuning_watermark(&host.tuning, host.n_buckets[0]);
		assert_true(watermark > flows);
		assert_in_range(watermark, slots / 2, slots * 84 / 100);
	}
}

static void watermark_is_in_its_range_whatever_was(void **state)
{
	(void)state;
	for (uint32_t n = TUNING_BUCKETS_UNIT; n < UINT32_MAX / 3; n *= 3) {
		struct tuning tuning;
		uint64_t slots = slots_of(n);

		tuning_init(&tuning, UINT32_MAX, 0);
		for (uint64_t peak = 0; peak <= 1ULL << 34; peak = peak * 2 + 1) {
			tuning.peak = peak;
			assert_in_range(tuning_watermark(&tuning, n), slots / 2,
					slots * 84 / 100);
		}
		for (uint64_t flows = 0; flows <= 1ULL << 34;
		     flows = flows * 2 + 1)
			assert_in_range(tuning_next_watermark(n, flows),
					slots / 3, slots * 60 / 100);
	}
}

/* What comes until the next table is there finds room in this one. */
static void next_watermark_leaves_time_to_make_a_table(void **state)
{
	const uint32_t now = 24576;
	struct tuning tuning;
	uint32_t next;

	(void)state;
	tuning_init(&tuning, DEFAULT_FLOWS, 0);
	next = tuning_grow(&tuning, now);
	assert_true(next > now);
	assert_int_equal(tuning_meanwhile(next, 0), 0);
	/* 8 microseconds a bucket: a quarter of a second for 32768. */
	assert_in_range(tuning_meanwhile(32768, 400000), 99000, 110000);
	for (uint64_t per_s = 1; per_s <= 430000; per_s = per_s * 5 / 4 + 1) {
		uint64_t meanwhile = tuning_meanwhile(next, per_s);
		uint64_t watermark = tuning_next_watermark(now, meanwhile);

		assert_true(watermark + meanwhile <= slots_of(now) * 84 / 100);
		assert_true(watermark == slots_of(now) / 5 * 3 ||
			    watermark + meanwhile >= slots_of(now) * 83 / 100);
	}
}

/* Traffic that goes up and down by a tenth. */
static void small_changes_of_the_load_change_nothing(void **state)
{
	struct host host = start(DEFAULT_FLOWS, 0), before;

	(void)state;
	intervals(&host, 4, 220000);
	before = host;
	for (int i = 0; i < 50; i++) {
		interval(&host, 180000 + (i * 7919) % 40000);
		assert_int_equal(host.n_buckets[0], before.n_buckets[0]);
		assert_int_equal(host.n_buckets[1], before.n_buckets[1]);
	}
}

static void tables_of_100000_flows_take_34_mib(void **state)
{
	struct host host = start(DEFAULT_FLOWS, 0);

	(void)state;
	intervals(&host, 10, 100000);
	assert_true(bytes_of(&host) <= 34 * MIB);
	/* Also when they came down from more. */
	intervals(&host, 2, 1000000);
	intervals(&host, 20, 100000);
	assert_true(bytes_of(&host) <= 34 * MIB * 4 / 3);
}

static void tables_get_small_again_when_the_load_is_gone(void **state)
{
	struct host host = start(DEFAULT_FLOWS, 0);

	(void)state;
	intervals(&host, 2, 100000);
	intervals(&host, 12, 1000);
	assert_true(is_smallest(&host));
	/* Whatever it was, at most the third more that is not worth a change. */
	for (uint64_t flows = 1000; flows <= 100000; flows += 250) {
		host = start(DEFAULT_FLOWS, 0);
		intervals(&host, 2, flows);
		intervals(&host, 12, 1000);
		for (int g = 0; g < GENERATIONS; g++)
			assert_in_range(host.n_buckets[g], TUNING_BUCKETS_MIN,
					TUNING_BUCKETS_MIN / 3 * 4);
	}
}

static void peak_fades_by_a_quarter_an_interval(void **state)
{
	struct tuning tuning;

	(void)state;
	tuning_init(&tuning, DEFAULT_FLOWS, 0);
	tuning_note(&tuning, 1000);
	assert_int_equal(tuning.peak, 1000);
	tuning_note(&tuning, 10);
	assert_int_equal(tuning.peak, 750);
	tuning_note(&tuning, 740);
	assert_int_equal(tuning.peak, 740);
	for (int i = 0; i < 40; i++)
		tuning_note(&tuning, 0);
	assert_true(tuning.peak < 4);
}

/* Flows that are there before the interval ends count at once, and fade as others. */
static void expected_flows_raise_the_peak_and_never_lower_it(void **state)
{
	struct tuning tuning;

	(void)state;
	tuning_init(&tuning, DEFAULT_FLOWS, 0);
	tuning_note(&tuning, 1000);
	tuning_expect(&tuning, 500);
	assert_int_equal(tuning.peak, 1000);
	tuning_expect(&tuning, 200000);
	assert_int_equal(tuning.peak, 200000);
	assert_true(slots_of(tuning_fit(&tuning, TUNING_BUCKETS_MIN)) * 4 / 5 >=
		    200000);
	tuning_note(&tuning, 0);
	assert_int_equal(tuning.peak, 150000);
}

/* What a generation has when all that can be added was; its number of tables. */
static uint64_t grown(const struct tuning *tuning, uint32_t *ret_tables)
{
	uint64_t n_buckets = tuning_fit(tuning, 0);
	uint32_t more;

	for (*ret_tables = 1; (more = tuning_grow(tuning, n_buckets));
	     ++*ret_tables) {
		assert_int_equal(more % TUNING_BUCKETS_UNIT, 0);
		n_buckets += more;
		assert_true(n_buckets <= tuning->max_buckets);
	}
	return n_buckets;
}

static void growth_reaches_the_cap_in_few_tables(void **state)
{
	(void)state;
	for (uint64_t flows = 1; flows <= UINT32_MAX; flows = flows * 3 / 2 + 1) {
		struct tuning tuning;
		uint32_t tables;
		uint64_t n_buckets;

		tuning_init(&tuning, flows, 0);
		n_buckets = grown(&tuning, &tables);
		assert_true(slots_of(n_buckets) / 85 * 100 >= flows);
		if (flows <= DEFAULT_FLOWS)
			assert_true(tables <= TABLE_LEVELS);
	}
}

static void growth_stays_below_the_cap_in_bytes(void **state)
{
	const uint64_t least = GENERATIONS * TUNING_BUCKETS_MIN * bucket_bytes;

	(void)state;
	for (uint64_t bytes = least; bytes < 1ULL << 44; bytes += bytes / 7) {
		struct tuning tuning;
		uint32_t tables;

		tuning_init(&tuning, UINT32_MAX, bytes);
		assert_true(grown(&tuning, &tables) * GENERATIONS * bucket_bytes <=
			    bytes);
		tuning_note(&tuning, UINT64_MAX / 8);
		assert_true((uint64_t)tuning_fit(&tuning, 0) * GENERATIONS *
				    bucket_bytes <=
			    bytes);
	}
}

static void extremes_give_tables_that_can_be(void **state)
{
	static const uint64_t flows[] = { 1,	2,    15,	  16,	     17,
					  1023, 1024, UINT32_MAX, UINT64_MAX };
	static const uint64_t bytes[] = { 0, 1, 4096, UINT32_MAX, UINT64_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++) {
		for (size_t k = 0; k < sizeof(bytes) / sizeof(bytes[0]); k++) {
			struct host host = start(flows[i], bytes[k]);
			uint32_t tables;

			assert_true(host.tuning.max_buckets >=
				    TUNING_BUCKETS_UNIT);
			intervals(&host, 3, flows[i]);
			intervals(&host, 3, 0);
			intervals(&host, 3, UINT64_MAX);
			assert_int_equal(host.n_buckets[0],
					 host.tuning.max_buckets);
			grown(&host.tuning, &tables);
		}
	}
}

static void table_that_is_over_the_cap_grows_no_more(void **state)
{
	struct tuning tuning;

	(void)state;
	tuning_init(&tuning, 1, 0);
	assert_int_equal(tuning_grow(&tuning, TUNING_BUCKETS_UNIT), 0);
	assert_int_equal(tuning_grow(&tuning, TUNING_BUCKETS_MIN), 0);
	assert_int_equal(tuning_grow(&tuning, UINT32_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_small_at_the_start),
		cmocka_unit_test(tables_fit_a_steady_load),
		cmocka_unit_test(watermark_is_above_a_steady_load),
		cmocka_unit_test(watermark_is_in_its_range_whatever_was),
		cmocka_unit_test(next_watermark_leaves_time_to_make_a_table),
		cmocka_unit_test(small_changes_of_the_load_change_nothing),
		cmocka_unit_test(tables_of_100000_flows_take_34_mib),
		cmocka_unit_test(tables_get_small_again_when_the_load_is_gone),
		cmocka_unit_test(peak_fades_by_a_quarter_an_interval),
		cmocka_unit_test(expected_flows_raise_the_peak_and_never_lower_it),
		cmocka_unit_test(growth_reaches_the_cap_in_few_tables),
		cmocka_unit_test(growth_stays_below_the_cap_in_bytes),
		cmocka_unit_test(extremes_give_tables_that_can_be),
		cmocka_unit_test(table_that_is_over_the_cap_grows_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
