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

TEST_WITH(refused_records_are_the_only_ones_missing, module_set_up,
	  module_tear_down)
{
	static const struct {
		const char *status;
		uint64_t every, n_bad;
	} cases[] = { { "11", 1000, 1 }, { "3", 500, 1 }, { "3", 2500, 10 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		refuse_some(*state, cases[i].status, cases[i].every,
			    cases[i].n_bad);
		module_tear_down(state);
		module_set_up(state);
	}
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
