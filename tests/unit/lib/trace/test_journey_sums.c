// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Sums of journeys: percentiles, unknown parts, more journeys than are kept. */
#include "lib_journeys.h"

static const uint32_t ranks[] = { 0, 500, 900, 990, 1000 };

static struct netobs_journey_sums sums_of(const struct netobs_journeys *all)
{
	struct netobs_journey_sums sums = { .sz = sizeof(sums) };

	assert_int_equal(netobs_journeys_get(all, 0, &sums), 0);
	assert_int_equal(sums.sz, sizeof(sums));
	return sums;
}

static uint64_t ranked_total(struct netobs_journeys *all, uint32_t per_mille)
{
	uint64_t ns[NETOBS_JOURNEY_SERIES];

	assert_int_equal(netobs_journeys_ranked(all, 0, per_mille, ns), 0);
	return ns[NETOBS_JOURNEY_TOTAL];
}

TEST(percentiles_are_exact)
{
	struct netobs_journeys *all = make_sums();
	uint64_t ns[5];

	for (uint64_t i = 1000; i >= 1; i--)
		add_journey(all, i * 1000, 5);
	assert_int_equal(netobs_journeys_percentiles(all, 0, NETOBS_JOURNEY_TCP,
						     ranks, 5, ns),
			 0);
	assert_int_equal(ns[0], 1000);
	assert_int_equal(ns[1], 500000);
	assert_int_equal(ns[2], 900000);
	assert_int_equal(ns[3], 990000);
	assert_int_equal(ns[4], 1000000);
	assert_int_equal(netobs_journeys_percentiles(all, 1, NETOBS_JOURNEY_TCP,
						     ranks, 5, ns),
			 -ENODATA);
	assert_int_equal(ranked_total(all, 990), 990005);
	netobs_journeys_free(all);
}

TEST(parts_that_are_not_known_do_not_count)
{
	struct netobs_journey journey = make_journey(100, 0);
	struct netobs_journeys *all = make_sums();
	struct netobs_journey_sums sums;
	uint64_t ns;

	add_journey(all, 200, 300);
	assert_string_equal(sums_of(all).name, "client > server");
	journey.unknown_parts = 1U << NETOBS_JOURNEY_READER;
	journey.record.has = 0;
	assert_int_equal(netobs_journeys_add(all, &journey), 0);
	sums = sums_of(all);
	assert_int_equal(sums.series[NETOBS_JOURNEY_TCP].journeys, 2);
	assert_int_equal(sums.series[NETOBS_JOURNEY_TCP].sum_ns, 300);
	assert_int_equal(sums.series[NETOBS_JOURNEY_READER].journeys, 1);
	assert_int_equal(sums.series[NETOBS_JOURNEY_TOTAL].journeys, 1);
	assert_int_equal(netobs_journeys_percentiles(all, 0, NETOBS_JOURNEY_READER,
						     &ranks[1], 1, &ns),
			 0);
	assert_int_equal(ns, 300);
	assert_int_equal(ranked_total(all, 500), 500);
	assert_int_equal(sums.complete, 1);
	/* One that lacks it is enough: names would be wrong. */
	assert_string_equal(sums.name, "direction 0");
	netobs_journeys_free(all);
}

/* What is beyond the limit is chosen evenly: percentiles are near, the rest is exact. */
TEST(more_journeys_than_are_kept)
{
	const uint64_t n = 3 * NETOBS_JOURNEYS_KEPT_MAX;
	struct netobs_journeys *all = make_sums();
	struct netobs_journey_sums sums;
	uint64_t ns[5];

	for (uint64_t i = 1; i <= n; i++)
		add_journey(all, i, 0);
	sums = sums_of(all);
	assert_int_equal(sums.kept, NETOBS_JOURNEYS_KEPT_MAX);
	assert_int_equal(sums.journeys, n);
	assert_int_equal(sums.series[NETOBS_JOURNEY_TOTAL].sum_ns,
			 n * (n + 1) / 2);
	assert_int_equal(sums.series[NETOBS_JOURNEY_TOTAL].max_ns, n);
	assert_int_equal(netobs_journeys_percentiles(
				 all, 0, NETOBS_JOURNEY_TOTAL, ranks, 5, ns),
			 0);
	assert_in_range(ns[1], n / 100 * 48, n / 100 * 52);
	assert_in_range(ns[2], n / 100 * 88, n / 100 * 92);
	assert_int_equal(ranked_total(all, 1000), n);
	netobs_journeys_free(all);
}

TEST(wrong_arguments_are_refused)
{
	struct netobs_journey journey = make_journey(1, 1);
	struct netobs_journey_sums sums = { .sz = sizeof(sums) };
	struct netobs_journeys *all = make_sums();
	uint64_t ns[NETOBS_JOURNEY_SERIES];

	assert_int_equal(netobs_journeys_new(NULL), -EINVAL);
	assert_int_equal(netobs_journeys_ranked(all, 0, 500, ns), -ENODATA);
	assert_int_equal(netobs_journeys_ranked(all, 2, 500, ns), -EINVAL);
	assert_int_equal(netobs_journeys_get(all, 2, &sums), -EINVAL);
	sums.sz = 0;
	assert_int_equal(netobs_journeys_get(all, 0, &sums), -EINVAL);
	assert_int_equal(netobs_journeys_percentiles(
				 all, 0, NETOBS_JOURNEY_SERIES, ranks, 1, ns),
			 -EINVAL);
	assert_int_equal(netobs_journeys_add(all, NULL), -EINVAL);
	assert_int_equal(netobs_journeys_add(NULL, &journey), -EINVAL);
	journey.record.type = NETOBS_RECORD_FLOW;
	assert_int_equal(netobs_journeys_add(all, &journey), -EINVAL);
	assert_null(netobs_journey_series_name(NETOBS_JOURNEY_SERIES));
	assert_string_equal(netobs_journey_series_name(NETOBS_JOURNEY_TOTAL),
			    "total");
	netobs_journeys_free(NULL);
	netobs_journeys_free(all);
}
