// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "sinks/grpc/retry.h"

#include "lib_test.h"
#include "base/util.h"

/*
 * @n records to a collector that takes @call_ms for a call and @record_us for each
 * record. A call that timed out was wasted, although the collector had its records.
 */
static unsigned int send_all(struct pace *pace, uint32_t n, uint32_t call_ms,
			     uint32_t record_us, uint64_t *ret_sent)
{
	unsigned int calls = 0;

	*ret_sent = 0;
	for (uint32_t from = 0; from < n; calls++) {
		uint32_t size =
			(uint32_t)min_u64(min_u64(pace->limit, 10000), n - from);
		uint64_t took = call_ms + (uint64_t)size * record_us / 1000;

		assert_true(size > 0 && calls < 10000);
		*ret_sent += size;
		if (took > pace->deadline_ms) {
			pace_timed_out(pace, size);
		} else {
			pace_succeeded(pace, size, (int64_t)took);
			from += size;
		}
	}
	return calls;
}

TEST(each_speed_is_found)
{
	static const struct {
		uint32_t call_ms, record_us, most_again, most_calls;
	} cases[] = {
		{ 1, 1, 0, 10 },	     /* fast */
		{ 6000, 0, 10000, 13 },	     /* a second too long */
		{ 45000, 0, 20000, 170 },    /* just within the bound */
		{ 0, 1000, 10000, 14 },	     /* 10 s for a batch */
		{ 0, 10000, 30000, 60 },     /* 100 s: never a whole one */
		{ 5000, 20000, 40000, 100 }, /* both */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pace pace;
		uint64_t sent;
		unsigned int calls;

		pace_open(&pace, 5000);
		calls = send_all(&pace, 100000, cases[i].call_ms,
				 cases[i].record_us, &sent);
		assert_in_range(sent - 100000, 0, cases[i].most_again);
		assert_in_range(calls, 10, cases[i].most_calls);
		assert_in_range(pace.deadline_ms, 5000, PACE_MOST_MS);
	}
}

TEST(fast_collector_is_waited_for_less_again)
{
	struct pace pace;
	uint64_t sent;

	pace_open(&pace, 5000);
	send_all(&pace, 100000, 6000, 0, &sent);
	assert_true(pace.deadline_ms > 6000);
	send_all(&pace, 1000000, 1, 0, &sent);
	assert_int_equal(pace.deadline_ms, 5000);
	assert_false(pace_is_cautious(&pace));
}

TEST(time_is_bounded)
{
	static const struct {
		uint32_t first, most;
	} cases[] = { { 100, PACE_MOST_MS }, { 600000, 600000 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pace pace;

		pace_open(&pace, cases[i].first);
		for (int n = 0; n < 100; n++)
			pace_timed_out(&pace, 1);
		assert_int_equal(pace.deadline_ms, cases[i].most);
		assert_int_equal(pace.limit, 1);
	}
}
