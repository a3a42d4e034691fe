// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Answers that acknowledge nothing, records that are refused, and collectors that are slow. */
#include "lib_module.h"

/* ---- Answers that are none -------------------------------------------------------- */

MODULE_TEST(trailers_acknowledge)
{
	f->collector.answer = ANSWER_TRAILERS;
	module_open(f, "");
	f->host.n_records = 100;
	module_work_until_done(f);
	assert_int_equal(f->collector.n_taken, 100);
	assert_string_equal(f->host.logged, "");
}

/* The call is larger than the window, so the rest of it was never read. */
MODULE_TEST(answer_to_half_a_call_acknowledges_nothing)
{
	f->collector.is_early = true;
	f->collector.answer = ANSWER_STATUS;
	f->collector.status = "0";
	module_open(f, "");
	f->host.n_records = 20000;
	module_work_until_logged(
		f, "it answered before it had received the whole call");
	assert_int_equal(f->host.acked, 0);
	f->collector.answer = ANSWER_OK;
	f->collector.is_early = false;
	module_work_until_done(f);
	assert_int_equal(f->collector.n_taken, 20000);
}

/* ---- Records that are refused ------------------------------------------------------- */

TEST_WITH(failures_of_the_server_refuse_nothing, module_set_up, module_tear_down)
{
	static const char *const statuses[] = { "13", "2", "15" };

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		struct module_fixture *f = *state;

		f->collector.answer = ANSWER_STATUS;
		f->collector.status = statuses[i];
		module_open(f, "");
		f->host.n_records = 200;
		module_work_until_logged(f, "does not accept records");
		assert_int_equal(f->host.acked, 0);
		f->collector.answer = ANSWER_OK;
		f->collector.is_unordered = true;
		module_work_until_done(f);
		assert_int_equal(f->collector.n_taken, 200);
		assert_int_equal(f->host.refused, 0);
		assert_int_equal(test_host_lines(&f->host), 2);
		if (i + 1 < ARRAY_SIZE(statuses)) {
			module_tear_down(state);
			module_set_up(state);
		}
	}
}

/* @n_bad of @every are, and nothing else is missing, or comes twice. */
static void refuse_some(struct module_fixture *f, const char *status,
			uint64_t every, uint64_t n_bad)
{
	struct collector *c = &f->collector;

	c->answer = ANSWER_PICKY;
	c->status = status;
	c->message = "Exception deserializing request!";
	c->bad_every = every;
	c->n_bad = n_bad;
	c->is_unordered = true;
	module_open(f, "batch_bytes=64K");
	f->host.n_records = 5000;
	module_work_until_done(f);
	assert_int_equal(f->host.refused, 5000 / every * n_bad);
	assert_int_equal(c->n_taken, 5000 - f->host.refused);
	assert_int_equal(c->n_again, 0);
	assert_non_null(strstr(f->host.logged, "refuses a record permanently: "));
	assert_non_null(strstr(f->host.logged, "; it is dropped"));
	assert_int_equal(test_host_lines(&f->host), 1);
}

MODULE_TEST(records_that_are_out_of_range_are_the_only_ones_missing)
{
	refuse_some(f, "11", 1000, 1);
}

MODULE_TEST(records_that_are_invalid_are_the_only_ones_missing)
{
	refuse_some(f, "3", 500, 1);
}

MODULE_TEST(records_in_a_row_are_the_only_ones_missing)
{
	refuse_some(f, "3", 2500, 10);
}

/* ---- Slow collectors ----------------------------------------------------------------- */

/* It answers each call a while after it began. */
MODULE_TEST(slow_collector_gets_all)
{
	struct collector *c = &f->collector;

	c->answer = ANSWER_OK;
	c->delay_ms = 350;
	c->is_unordered = true;
	module_open(f, "deadline=200ms&batch_bytes=64K");
	f->host.n_records = 5000;
	module_work_until_done(f);
	assert_int_equal(f->host.acked, 5000);
	assert_in_range(c->n_taken, 5000, 9000);
	assert_in_range(module_counter(f, "failed_calls"), 1, 2);
	assert_int_equal(f->host.refused, 0);
}

MODULE_TEST(closing_does_not_wait)
{
	f->collector.answer = ANSWER_NEVER;
	module_open(f, "");
	f->host.n_records = 20000;
	module_work_until_calls(f, 1);
}
