// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "sinks/grpc/retry.h"

#include "lib_test.h"
#include "base/clock_ms.h"

/* A collector, and the records that it accepts. */
struct picky {
	uint32_t most;		 /* records at a time */
	uint32_t bad, n_bad;	 /* it never takes these */
	unsigned int broken;	 /* it takes nothing, for so many calls */
	enum status_action says; /* its status for those */
};

struct outcome {
	unsigned int calls, again; /* again: records that it had taken before */
	unsigned int refused;
	uint8_t taken[100000];
};

static bool takes(const struct picky *picky, uint32_t from, uint32_t size,
		  unsigned int calls)
{
	return calls >= picky->broken && size <= picky->most &&
	       (picky->bad + picky->n_bad <= from || picky->bad >= from + size);
}

static void take(struct outcome *outcome, uint32_t from, uint32_t size)
{
	for (uint32_t i = from; i < from + size; i++)
		outcome->again += outcome->taken[i]++;
}

/* Until @n records are settled. Due times are not waited for. */
static void settle_all(const struct picky *picky, uint32_t n,
		       struct outcome *ret_outcome)
{
	struct retry retry;

	retry_open(&retry);
	memset(ret_outcome, 0, sizeof(*ret_outcome));
	for (uint32_t front = 0; front < n; ret_outcome->calls++) {
		uint32_t from = front + retry.distance;
		uint32_t size =
			from < n ? (uint32_t)min_u64(retry.limit, n - from) : 0;
		struct refusal refusal = { .n_records = size,
					   .end_seq = from + size };

		assert_true(ret_outcome->calls < 20000);
		if (!size) {
			retry_find_nothing(&retry, n - front);
		} else if (takes(picky, from, size, ret_outcome->calls)) {
			take(ret_outcome, from, size);
			front += retry.distance ? 0 : size;
			retry_succeeded(&retry, size, from + size);
		} else {
			refusal.action = size > picky->most ? STATUS_TOO_BIG :
							      picky->says;
			if (!retry_refused(&retry, &refusal))
				continue;
			assert_int_equal(size, 1);
			assert_in_range(from, picky->bad,
					picky->bad + picky->n_bad - 1);
			ret_outcome->refused++;
			front++;
		}
	}
}

TEST(all_goes_at_once_where_nothing_is_wrong)
{
	const struct picky picky = { .most = UINT32_MAX };
	static struct outcome outcome;

	settle_all(&picky, 100000, &outcome);
	assert_int_equal(outcome.calls, 1);
	assert_int_equal(outcome.refused, 0);
}

TEST(one_record_is_found_and_refused)
{
	static struct outcome outcome;

	for (uint32_t bad = 0; bad < 999; bad++) {
		const struct picky picky = { UINT32_MAX, bad, 1, 0,
					     bad % 2 ? STATUS_REFUSED :
						       STATUS_SUSPECT };

		settle_all(&picky, 1000, &outcome);
		assert_true(outcome.calls < 40);
		assert_int_equal(outcome.refused, 1);
		assert_true(outcome.again <= 1); /* the one that was tried instead */
	}
}

/* There is none behind it that could show that it is the record. */
TEST(last_record_is_kept)
{
	struct refusal refusal = { STATUS_REFUSED, 1, 1, 0 };
	struct retry retry;

	retry_open(&retry);
	for (int i = 0; i < 100; i++) {
		assert_false(retry_refused(&retry, &refusal));
		assert_true(retry.distance);
		retry_find_nothing(&retry, 1);
	}
	assert_true(retry_left_ms(&retry) == -1); /* begun long ago */
	assert_true(retry_is_hopeless(&retry));
}

TEST(records_in_a_row_are_found_and_refused)
{
	static struct outcome outcome;

	for (uint32_t n_bad = 2; n_bad < 900; n_bad += 100) {
		const struct picky picky = { UINT32_MAX, 50, n_bad, 0,
					     STATUS_REFUSED };

		settle_all(&picky, 1000, &outcome);
		assert_int_equal(outcome.refused, n_bad);
		assert_true(outcome.calls < 4 * n_bad + 60);
	}
}

/* It takes nothing for a while, whatever it says: no record is to blame. */
TEST(nothing_is_refused_while_nothing_is_taken)
{
	static struct outcome outcome;

	for (unsigned int broken = 0; broken < 300; broken++) {
		const struct picky picky = { UINT32_MAX, UINT32_MAX, 0, broken,
					     broken % 2 ? STATUS_REFUSED :
							  STATUS_SUSPECT };

		settle_all(&picky, 5000, &outcome);
		assert_int_equal(outcome.refused, 0);
		assert_true(outcome.again <= 1);
		assert_true(outcome.calls <= broken + 30);
	}
}

/* The records that the collector refuses are not tried again with each batch. */
TEST(size_is_found_once)
{
	const struct picky picky = { .most = 1000 };
	static struct outcome outcome;

	settle_all(&picky, 100000, &outcome);
	assert_true(outcome.calls < 100000 / 500 + 10);
	assert_int_equal(outcome.refused, 0);
}

TEST(size_and_record_are_found)
{
	static struct outcome outcome;

	for (uint32_t bad = 0; bad < 999; bad++) {
		const struct picky picky = { 100, bad, 1, 0, STATUS_REFUSED };

		settle_all(&picky, 1000, &outcome);
		assert_true(outcome.calls < 60);
		assert_int_equal(outcome.refused, 1);
	}
}

TEST(new_connection_may_take_more)
{
	struct refusal refusal = { STATUS_TOO_BIG, 1000, 1000, 0 };
	struct retry retry;

	retry_open(&retry);
	retry_refused(&retry, &refusal);
	assert_int_equal(retry.limit, 500);
	retry_renew(&retry);
	assert_true(retry.limit == UINT32_MAX);
}

TEST(delay_grows_and_ends_with_success)
{
	struct retry retry;
	int64_t begun = now_ms();

	retry_open(&retry);
	assert_int_equal(retry_left_ms(&retry), -1);
	retry_later(&retry, begun);
	assert_in_range(retry.backoff.due_ms - begun, 750, 1000);
	assert_true(retry_is_cautious(&retry));
	retry_later(&retry, begun);
	assert_in_range(retry.backoff.due_ms - begun, 1500, 2000);
	for (int i = 0; i < 100; i++)
		retry_later(&retry, begun);
	assert_in_range(retry.backoff.due_ms - begun, 2250, 3000);
	retry_later(&retry, begun - 5000); /* which was delay enough */
	assert_int_equal(retry_left_ms(&retry), -1);
	retry_succeeded(&retry, 1, 1);
	assert_false(retry_is_cautious(&retry));
}

/* ---- Pace ------------------------------------------------------------------------ */

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
