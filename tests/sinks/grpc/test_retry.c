// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "sinks/grpc/retry.h"

#include "lib_test.h"
#include "base/clock_ms.h"
#include "base/util.h"

#include <string.h>

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
