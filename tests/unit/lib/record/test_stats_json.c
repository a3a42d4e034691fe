/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_test.h"

#include <netobs/stats.h>

static struct netobs_stats some_stats(void)
{
	return (struct netobs_stats){
		.sz = sizeof(struct netobs_stats),
		.seen = { 20, 2000 },
		.observed = { 40, 4000 },
		.exported = { 6, 600 },
		.filtered = { 3, 300 },
		.sampled_out = { 2, 200 },
		.unparsed = { { 1, 100 },
			      { 1, 101 },
			      { 1, 102 },
			      { 1, 103 },
			      { 1, 104 },
			      { 1, 108 } },
		.lost = { { 1, 105 }, { 2, 106 }, { 1, 107 } },
	};
}

TEST(every_category_and_reason_has_packets_and_bytes)
{
	const struct netobs_stats stats = some_stats();
	char text[1024];
	int len = netobs_stats_json(&stats, text, sizeof(text));

	assert_int_equal(len, strlen(text));
	assert_string_equal(
		text, "{\"seen\":{\"packets\":20,\"bytes\":2000,"
		      "\"observed_packets\":40,\"observed_bytes\":4000},"
		      "\"exported\":{\"packets\":6,\"bytes\":600},"
		      "\"filtered\":{\"packets\":3,\"bytes\":300},"
		      "\"sampled_out\":{\"packets\":2,\"bytes\":200},"
		      "\"unparsed\":{\"short\":{\"packets\":1,\"bytes\":100},"
		      "\"bad_header\":{\"packets\":1,\"bytes\":101},"
		      "\"too_deep\":{\"packets\":1,\"bytes\":102},"
		      "\"arp\":{\"packets\":1,\"bytes\":103},"
		      "\"not_ip\":{\"packets\":1,\"bytes\":104},"
		      "\"ppp\":{\"packets\":1,\"bytes\":108},"
		      "\"wlan\":{\"packets\":0,\"bytes\":0},"
		      "\"link_type\":{\"packets\":0,\"bytes\":0}},"
		      "\"lost\":{\"table_full\":{\"packets\":1,\"bytes\":105},"
		      "\"kernel_memory\":{\"packets\":2,\"bytes\":106},"
		      "\"memory\":{\"packets\":1,\"bytes\":107},"
		      "\"restart\":{\"packets\":0,\"bytes\":0}}}");
}

/* Else the terms would not add up while records are held back. */
TEST(pending_is_a_term_while_there_is_any)
{
	struct netobs_stats stats = some_stats();
	char text[1024];

	stats.pending = (struct netobs_count){ 5, 55 };
	assert_true(netobs_stats_json(&stats, text, sizeof(text)) > 0);
	assert_non_null(
		strstr(text, ",\"pending\":{\"packets\":5,\"bytes\":55},"));
}

/* Inside the object that it is a part of. */
TEST(small_records_are_named_if_there_are_any)
{
	struct netobs_stats stats = some_stats();
	char text[1024];

	stats.small = (struct netobs_count){ 1, 10 };
	assert_true(netobs_stats_json(&stats, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "\"filtered\":{\"packets\":3,\"bytes\":300,"
				     "\"small_packets\":1,\"small_bytes\":10}"));
}

TEST(fields_beyond_what_the_caller_knows_count_as_zero)
{
	struct netobs_stats stats = some_stats();
	char text[1024];

	stats.sz = offsetof(struct netobs_stats, lost);
	assert_true(netobs_stats_json(&stats, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "\"not_ip\":{\"packets\":1,\"bytes\":104}"));
	assert_non_null(strstr(text, "\"restart\":{\"packets\":0,\"bytes\":0}}}"));
}

TEST(a_size_that_is_too_small_is_refused)
{
	const struct netobs_stats stats = some_stats();
	char text[1024], cut[1024];
	int len = netobs_stats_json(&stats, text, sizeof(text));

	assert_int_equal(netobs_stats_json(&stats, cut, (size_t)len), -ENOBUFS);
	assert_int_equal(netobs_stats_json(&stats, cut, 0), -ENOBUFS);
	assert_int_equal(netobs_stats_json(&stats, cut, (size_t)len + 1), len);
}

TEST(missing_arguments_are_refused)
{
	struct netobs_stats stats = some_stats();
	char text[16];

	assert_int_equal(netobs_stats_json(NULL, text, sizeof(text)), -EINVAL);
	assert_int_equal(netobs_stats_json(&stats, NULL, 0), -EINVAL);
	stats.sz = 0;
	assert_int_equal(netobs_stats_json(&stats, text, sizeof(text)), -EINVAL);
}
