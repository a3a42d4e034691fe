// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Metrics that are not asked for, or only in a file: nothing is served. */
#include "lib_test.h"

#include "service/metrics/metrics.h"

TEST(no_metrics_are_nowhere)
{
	char text[64] = "unchanged";

	assert_false(metrics_where(NULL, text, sizeof(text)));
	assert_string_equal(text, "unchanged");
	assert_int_equal(metrics_fd(NULL), -1);
	metrics_dispatch(NULL);
	metrics_write(NULL, true);
	metrics_forget(NULL);
	metrics_close(NULL);
}

TEST(metrics_without_an_address_are_nowhere)
{
	const struct metrics_config config = { 0 };
	const struct metrics_source source = { 0 };
	struct metrics *metrics;
	char text[64] = "unchanged", why[64];

	assert_int_equal(
		metrics_open(&config, &source, &metrics, why, sizeof(why)), 0);
	assert_false(metrics_where(metrics, text, sizeof(text)));
	assert_string_equal(text, "unchanged");
	metrics_dispatch(metrics);
	metrics_write(metrics, true);
	metrics_close(metrics);
}
