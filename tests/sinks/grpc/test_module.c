// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The module, and a collector in this very thread that does as each test says: what
 * real ones do rarely. If the module waited, the collector could not answer.
 */
#include "lib_module.h"

#include "lib_wait.h"
#include "base/clock_ms.h"

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
	static const struct failure failure = {
		.logged = " does not implement /netobs.Collector/Send: "
			  "UNIMPLEMENTED: Method not found!; trying again",
		.answer = ANSWER_STATUS,
		.status = "12",
		.message = "Method not found!",
	};

	give_others(f);
	module_fail_then_recover(f, &failure);
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

MODULE_TEST(one_call_is_open_at_a_time)
{
	f->collector.answer = ANSWER_NEVER;
	module_open(f, "batch_bytes=64K");
	f->host.n_records = 20000;
	module_work_until_calls(f, 1);
	module_turns(f, 50);
	assert_int_equal(f->collector.n_rpcs, 1);
	assert_int_equal(f->host.acked, 0);
	f->collector.answer = ANSWER_OK;
	collector_answer(&f->collector, f->collector.rpcs);
	await_by(f->host.acked, module_turn(f, true));
}

/* ---- Failures ----------------------------------------------------------------------- */

TEST_WITH(failures_are_told_and_survived, module_set_up, module_tear_down)
{
	static const struct failure failures[] = {
		{ .logged = "UNAVAILABLE: HTTP status 502; trying again",
		  .answer = ANSWER_HTTP,
		  .status = "502" },
		{ .logged = "UNKNOWN: the answer has no status",
		  .answer = ANSWER_HTTP,
		  .status = "200" },
		{ .logged = "the call was reset: ENHANCE_YOUR_CALM",
		  .answer = ANSWER_RESET,
		  .error = NGHTTP2_ENHANCE_YOUR_CALM },
		/* Words of the collector are made readable. */
		{ .logged = "UNAUTHENTICATED: no token?; trying",
		  .answer = ANSWER_STATUS,
		  .status = "16",
		  .message = "no%20token%0a" },
		/* It need not read a message that it refuses. */
		{ .logged = "UNAVAILABLE; trying again",
		  .answer = ANSWER_STATUS,
		  .status = "14",
		  .window = 100 },
		/* Answers that acknowledge nothing. */
		{ .logged = "the call was reset: INTERNAL_ERROR",
		  .answer = ANSWER_EARLY_STATUS },
		{ .logged = "UNAVAILABLE: HTTP status 404",
		  .answer = ANSWER_HTTP_OK,
		  .status = "404" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
		module_fail_then_recover(*state, &failures[i]);
		module_tear_down(state);
		module_set_up(state);
	}
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

MODULE_TEST(connection_that_breaks_takes_its_call_along)
{
	f->collector.answer = ANSWER_NEVER;
	module_open(f, "batch_bytes=64K");
	f->host.n_records = 2000;
	module_work_until_calls(f, 1);
	collector_hang_up(&f->collector);
	f->collector.answer = ANSWER_OK;
	module_work_until_done(f);
	assert_int_equal(f->collector.n_taken, 2000);
	assert_int_equal(f->collector.n_again, 0);
	assert_int_equal(module_counter(f, "connections"), 2);
	assert_int_equal(module_counter(f, "failed_calls"), 0);
}

/* The call is below the number that it names. */
MODULE_TEST(collector_that_goes_away_finishes_what_it_has)
{
	struct collector *c = &f->collector;

	c->answer = ANSWER_NEVER;
	module_open(f, "batch_bytes=64K");
	f->host.n_records = 2000;
	module_work_until_calls(f, 1);
	module_turns(f, 50);
	nghttp2_submit_goaway(c->h2, 0, c->rpcs[0].id, NGHTTP2_NO_ERROR, NULL, 0);
	module_turns(f, 50);
	assert_int_equal(f->host.acked, 0);
	c->answer = ANSWER_OK;
	collector_answer(c, &c->rpcs[0]);
	module_work_until_done(f);
	assert_int_equal(c->n_taken, 2000);
	assert_int_equal(c->n_again, 0);
	assert_int_equal(module_counter(f, "connections"), 2);
	assert_string_equal(f->host.logged, "");
}

MODULE_TEST(call_that_a_collector_leaves_when_it_goes_away_is_sent_again)
{
	struct collector *c = &f->collector;

	c->answer = ANSWER_NEVER;
	module_open(f, "");
	f->host.n_records = 10;
	module_work_until_calls(f, 1);
	nghttp2_submit_goaway(c->h2, 0, 0, NGHTTP2_NO_ERROR, NULL, 0);
	c->answer = ANSWER_OK;
	module_work_until_done(f);
	assert_int_equal(c->n_taken, 10);
	assert_int_equal(c->n_again, 0);
	assert_int_equal(module_counter(f, "failed_calls"), 0);
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
