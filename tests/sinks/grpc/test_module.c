// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The module, and a collector in this very thread that does as each test says: what
 * real ones do rarely. If the module waited, the collector could not answer.
 */
#include "lib_module.h"

#include "lib_wait.h"
#include "base/clock_ms.h"

#include <stdio.h>
#include <string.h>

/* ---- Calls ------------------------------------------------------------------------- */

MODULE_TEST(call_is_what_grpc_wants)
{
	const struct rpc *rpc = f->collector.rpcs;
	char authority[64];

	module_open(f, "deadline=1500ms");
	f->host.n_records = 10;
	module_work_until_done(f);
	assert_string_equal(rpc->path, "/pbflow.Collector/Send");
	assert_string_equal(rpc->scheme, "http");
	snprintf(authority, sizeof(authority), "127.0.0.1:%u", f->collector.port);
	assert_string_equal(rpc->authority, authority);
	assert_string_equal(rpc->timeout, "1500m");
	assert_string_equal(rpc->type, "application/grpc");
	assert_string_equal(rpc->te, "trailers");
	assert_int_equal(f->collector.n_taken, 10);
	assert_int_equal(module_counter(f, "calls"), 1);
	assert_string_equal(f->host.logged, "");
}

static const struct netobs_record *make_other(uint64_t n)
{
	static const struct netobs_session session = {
		.record = { .sz = sizeof(session), .type = NETOBS_RECORD_SESSION },
	};
	static const struct netobs_alert alert = {
		.record = { .sz = sizeof(alert), .type = NETOBS_RECORD_ALERT },
	};

	return n % 3 ? &session.record : &alert.record;
}

static void give_others(struct module_fixture *f)
{
	f->host.make_other = make_other;
	f->host.host.types = SINK_TYPE(SESSION) | SINK_TYPE(ALERT);
}

MODULE_TEST(sessions_and_alerts_have_a_service_of_their_own)
{
	give_others(f);
	module_open(f, "");
	f->host.n_records = 1000;
	module_work_until_done(f);
	assert_string_equal(f->collector.rpcs->path, "/netobs.Collector/Send");
	assert_int_equal(f->collector.n_taken, 1000);
	assert_string_equal(f->host.logged, "");
}

MODULE_TEST(collector_without_that_service_is_told)
{
	give_others(f);
	f->collector.answer = ANSWER_STATUS;
	f->collector.status = "12";
	f->collector.message = "Method not found!";
	module_fail_then_recover(
		f, " does not implement /netobs.Collector/Send: UNIMPLEMENTED: "
		   "Method not found!; trying again");
}

MODULE_TEST(batches_are_no_larger_than_allowed)
{
	module_open(f, "batch_bytes=64K");
	f->host.n_records = 5000;
	module_work_until_done(f);
	assert_int_equal(f->collector.n_taken, 5000);
	assert_int_equal(f->collector.n_again, 0);
	assert_true(f->collector.n_rpcs > 3);
	for (uint32_t i = 0; i < f->collector.n_rpcs; i++)
		assert_true(f->collector.rpcs[i].len <= (64 << 10) + 5);
}

MODULE_TEST(windows_of_the_collector_are_kept)
{
	f->collector.window = 1000;
	f->collector.is_unordered = true; /* two calls share the window */
	module_open(f, "");
	f->host.n_records = 20000;
	module_work_until_done(f);
	assert_int_equal(f->collector.n_taken, 20000);
}

MODULE_TEST(batch_waits_until_it_is_due)
{
	int64_t begin = now_ms();

	module_open(f, "batch_delay=300ms");
	f->host.n_records = 1;
	while (f->host.acked < 1)
		module_turn(f, false);
	assert_true(now_ms() - begin >= 300);
	assert_int_equal(f->collector.n_rpcs, 1);
}

/* The first is not answered: how many come at a time? */
MODULE_TEST(calls_at_a_time_are_limited)
{
	f->collector.answer = ANSWER_NEVER;
	module_open(f, "batch_bytes=64K");
	f->host.n_records = 20000;
	module_work_until_calls(f, 2);
	for (int i = 0; i < 50; i++)
		module_turn(f, true);
	assert_int_equal(f->collector.n_rpcs, 2);
	assert_int_equal(f->host.acked, 0);
}

MODULE_TEST(answers_count_in_order)
{
	struct collector *c = &f->collector;

	c->answer = ANSWER_NEVER;
	module_open(f, "batch_bytes=64K");
	f->host.n_records = 20000;
	module_work_until_calls(f, 2);
	for (int i = 0; i < 50; i++)
		module_turn(f, true);
	c->answer = ANSWER_STATUS;
	c->status = "0";
	collector_answer(c, &c->rpcs[1]);
	for (int i = 0; i < 50; i++)
		module_turn(f, true);
	assert_int_equal(f->host.acked, 0);
	collector_answer(c, &c->rpcs[0]);
	await_by(f->host.acked, module_turn(f, true));
}

/* ---- Failures ----------------------------------------------------------------------- */

MODULE_TEST(status_of_http_is_told)
{
	f->collector.answer = ANSWER_HTTP;
	f->collector.status = "502";
	module_fail_then_recover(f, "UNAVAILABLE: HTTP status 502; trying again");
}

MODULE_TEST(answer_without_status_is_told)
{
	f->collector.answer = ANSWER_HTTP;
	f->collector.status = "200";
	module_fail_then_recover(f, "UNKNOWN: the answer has no status");
}

MODULE_TEST(reset_is_told)
{
	f->collector.answer = ANSWER_RESET;
	f->collector.error = NGHTTP2_ENHANCE_YOUR_CALM;
	module_fail_then_recover(f, "the call was reset: ENHANCE_YOUR_CALM");
}

MODULE_TEST(words_of_the_collector_are_made_readable)
{
	f->collector.answer = ANSWER_STATUS;
	f->collector.status = "16";
	f->collector.message = "no%20token%0a";
	module_fail_then_recover(f, "UNAUTHENTICATED: no token?; trying");
}

/* It need not read a message that it refuses. */
MODULE_TEST(answer_may_come_before_the_end_of_the_call)
{
	f->collector.is_early = true;
	f->collector.answer = ANSWER_STATUS;
	f->collector.status = "14";
	f->collector.window = 100;
	module_fail_then_recover(f, "UNAVAILABLE; trying again");
}

MODULE_TEST(idle_connection_may_be_closed)
{
	module_open(f, "");
	f->host.n_records = 10;
	module_work_until_done(f);
	collector_hang_up(&f->collector);
	f->host.n_records = 20;
	module_work_until_done(f);
	assert_int_equal(f->collector.n_again, 0);
	assert_int_equal(module_counter(f, "connections"), 2);
	assert_string_equal(f->host.logged, "");
}

MODULE_TEST(connection_that_breaks_takes_its_calls_along)
{
	f->collector.answer = ANSWER_NEVER;
	module_open(f, "batch_bytes=64K");
	f->host.n_records = 2000;
	module_work_until_calls(f, 2);
	collector_hang_up(&f->collector);
	f->collector.answer = ANSWER_OK;
	module_work_until_done(f);
	assert_int_equal(f->collector.n_taken, 2000);
	assert_int_equal(f->collector.n_again, 0);
	assert_int_equal(module_counter(f, "connections"), 2);
	assert_int_equal(module_counter(f, "failed_calls"), 0);
}

/* The first call is below the number that it names, the second is not. */
MODULE_TEST(collector_that_goes_away_finishes_what_it_has)
{
	struct collector *c = &f->collector;

	c->answer = ANSWER_NEVER;
	module_open(f, "batch_bytes=64K");
	f->host.n_records = 2000;
	module_work_until_calls(f, 2);
	for (int i = 0; i < 50; i++)
		module_turn(f, true);
	nghttp2_submit_goaway(c->h2, 0, c->rpcs[0].id, NGHTTP2_NO_ERROR, NULL, 0);
	for (int i = 0; i < 50; i++)
		module_turn(f, true);
	assert_int_equal(f->host.acked, 0);
	c->answer = ANSWER_OK;
	collector_answer(c, &c->rpcs[0]);
	module_work_until_done(f);
	assert_int_equal(c->n_taken, 2000);
	assert_int_equal(c->n_again, 0);
	assert_int_equal(module_counter(f, "connections"), 2);
	assert_string_equal(f->host.logged, "");
}

MODULE_TEST(collector_that_goes_away_in_anger_is_told)
{
	f->collector.answer = ANSWER_NEVER;
	module_open(f, "");
	f->host.n_records = 10;
	module_work_until_calls(f, 1);
	nghttp2_submit_goaway(f->collector.h2, 0, 0, NGHTTP2_ENHANCE_YOUR_CALM,
			      NULL, 0);
	module_work_until_logged(f, "it ended the session: ENHANCE_YOUR_CALM");
	f->collector.answer = ANSWER_OK;
	module_work_until_done(f);
	assert_int_equal(f->collector.n_again, 0);
}

MODULE_TEST(session_that_ends_at_once_is_reported)
{
	f->collector.is_leaving = true;
	module_open(f, "");
	f->host.n_records = 100;
	module_work_until_logged(f,
				 "ends each session before it accepts a record");
	assert_int_equal(f->host.acked, 0);
	assert_int_equal(test_host_lines(&f->host), 1);
	f->collector.is_leaving = false;
	module_work_until_done(f);
	assert_non_null(strstr(f->host.logged, "connected to 127.0.0.1"));
	assert_int_equal(test_host_lines(&f->host), 2);
}
