// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A batch whose records a collector refuses, in part or as a whole. */
#include "sinks/batch/batch.h"

#include "lib_test.h"

/* A collector, and the records that it accepts. */
struct picky {
	uint32_t most;	     /* records at a time */
	uint32_t bad, n_bad; /* it never takes these */
};

static bool takes(const struct picky *picky, const struct batch *batch)
{
	for (uint32_t i = 0; i < batch->n_tried; i++) {
		uint64_t seq = batch_tried(batch, i)->end.seq;

		if (seq >= picky->bad && seq < picky->bad + picky->n_bad)
			return false;
	}
	return true;
}

static void fill_batch(struct batch *batch, uint32_t n)
{
	batch_clear(batch);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(batch_reserve(batch, 10));
		batch_add(batch, 10, 0, (struct position){ .seq = i }, 1);
	}
	batch->limit = n;
}

/* @return the number of attempts until the outcome of all records is known */
static unsigned int settle_batch(const struct picky *picky, uint32_t n,
				 uint32_t *ret_refused)
{
	static struct batch batch;
	unsigned int attempts = 0;
	uint32_t in_row = 0;
	size_t bytes = SIZE_MAX;

	*ret_refused = 0;
	for (fill_batch(&batch, n); batch.n_waiting; attempts++) {
		batch_try(&batch);
		assert_true(batch.n_tried && attempts < 20000);
		if (batch.n_tried > picky->most) {
			batch_shrink(&batch, &bytes, 100);
			assert_true(bytes >= 100);
		} else if (takes(picky, &batch)) {
			batch_decide(&batch, OUTCOME_ACCEPTED);
			batch_grow(&batch);
			in_row = 0;
		} else if (batch_refuse(&batch, &in_row)) {
			*ret_refused += batch.n_tried;
		}
	}
	batch_free(&batch);
	return attempts;
}

TEST(all_goes_at_once_where_nothing_is_wrong)
{
	const struct picky picky = { .most = UINT32_MAX };
	uint32_t refused;

	assert_int_equal(settle_batch(&picky, 100000, &refused), 1);
	assert_int_equal(refused, 0);
}

/* Also where the collector takes few at a time. */
TEST(one_record_is_found_and_refused)
{
	for (uint32_t i = 0; i < 2 * 999; i++) {
		const bool has_room = i & 1;
		const struct picky picky = { has_room ? UINT32_MAX : 100, i / 2,
					     1 };
		uint32_t refused;

		assert_true(settle_batch(&picky, 1000, &refused) <
			    (has_room ? 60 : 80));
		assert_int_equal(refused, 1);
	}
}

TEST(records_in_a_row_are_found_and_refused)
{
	for (uint32_t n_bad = 2; n_bad < 50; n_bad += 10) {
		const struct picky picky = { UINT32_MAX, 50, n_bad };
		uint32_t refused;

		assert_true(settle_batch(&picky, 1000, &refused) < 4 * n_bad + 60);
		assert_int_equal(refused, n_bad);
	}
}

TEST(whole_batches_are_refused_where_all_records_are)
{
	const struct picky picky = { UINT32_MAX, 0, UINT32_MAX };
	uint32_t refused;

	assert_true(settle_batch(&picky, 100000, &refused) < 100);
	assert_int_equal(refused, 100000);
}
