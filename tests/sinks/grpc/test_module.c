// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The module, and a collector in this very thread that does as each test says: what
 * real ones do rarely. If the module waited, nobody would be left to answer.
 */
#include "lib_collector.h"
#include "lib_sink_host.h"

#include "net/deadline.h"
#include "pbflow/pbflow.h"
#include "util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* ---- Fixture ---------------------------------------------------------------------- */

struct fixture {
	struct test_host host;
	struct collector collector;
	void *module;
};

static const struct netobs_point eth0 = { .ifindex = 2, .name = "eth0" };

static void make_record(uint64_t n, struct netobs_flow *ret_flow)
{
	*ret_flow =
		(struct netobs_flow){ .sz = sizeof(*ret_flow),
				      .ethertype = 0x0800,
				      .proto = 17,
				      .packets = 1,
				      .bytes = n,
				      .n_points = 1,
				      .point_size = sizeof(struct netobs_point),
				      .points = &eth0 };
}

static int set_up(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(address);
	struct fixture *f = calloc(1, sizeof(*f));
	struct collector *c = &f->collector;

	test_host_open(&f->host);
	f->host.make = make_record;
	c->fd = -1;
	c->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(c->listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(c->listener, 4), 0);
	getsockname(c->listener, (struct sockaddr *)&address, &len);
	c->port = ntohs(address.sin_port);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	if (f->module)
		netobs_sink_module.close(f->module);
	collector_hang_up(&f->collector);
	close_fd(&f->collector.listener);
	test_host_close(&f->host);
	free(f);
	return 0;
}

static void open_module(struct fixture *f, const char *options)
{
	char text[256];
	struct spec spec;

	snprintf(text, sizeof(text), "grpc://127.0.0.1:%u%s%s",
		 f->collector.port, *options ? "?" : "", options);
	test_host_spec(&f->host, text, &spec);
	assert_int_equal(
		netobs_sink_module.open(&spec, &f->host.host, &f->module), 0);
	spec_free(&spec);
}

static void turn(struct fixture *f, bool flush)
{
	assert_int_equal(netobs_sink_module.work(f->module, flush), 0);
	collector_serve(&f->collector);
	test_host_wait(&f->host, 1);
}

/* Until all records have been settled. */
static void work_until_done(struct fixture *f)
{
	for (int64_t end = now_ms() + 20000; f->host.acked < f->host.n_records;) {
		turn(f, true);
		if (now_ms() > end)
			fail_msg("%llu of %llu: %s",
				 (unsigned long long)f->host.acked,
				 (unsigned long long)f->host.n_records,
				 f->host.logged);
	}
}

static void work_until_logged(struct fixture *f, const char *text)
{
	for (int64_t end = now_ms() + 20000; !strstr(f->host.logged, text);) {
		turn(f, true);
		if (now_ms() > end)
			fail_msg("no '%s': %s", text, f->host.logged);
	}
}

static void work_until_calls(struct fixture *f, uint32_t calls)
{
	for (int64_t end = now_ms() + 20000; f->collector.n_rpcs < calls;) {
		turn(f, true);
		assert_true(now_ms() < end);
	}
}

static void take_counter(void *ctx, const char *name, uint64_t value)
{
	const struct {
		const char *name;
		uint64_t *to;
	} *wanted = ctx;

	if (!strcmp(name, wanted->name))
		*wanted->to = value;
}

static uint64_t counter(const struct fixture *f, const char *name)
{
	uint64_t value = UINT64_MAX;
	struct {
		const char *name;
		uint64_t *to;
	} wanted = { name, &value };

	netobs_sink_module.counters(f->module, take_counter, &wanted);
	assert_true(value != UINT64_MAX);
	return value;
}

/* ---- Calls ------------------------------------------------------------------------- */

static void call_is_what_grpc_wants(void **state)
{
	struct fixture *f = *state;
	const struct rpc *rpc = f->collector.rpcs;

	open_module(f, "deadline=1500ms&authority=flp:1");
	f->host.n_records = 10;
	work_until_done(f);
	assert_string_equal(rpc->path, "/pbflow.Collector/Send");
	assert_string_equal(rpc->scheme, "http");
	assert_string_equal(rpc->authority, "flp:1");
	assert_string_equal(rpc->timeout, "1500m");
	assert_string_equal(rpc->type, "application/grpc");
	assert_string_equal(rpc->te, "trailers");
	assert_int_equal(f->collector.n_taken, 10);
	assert_int_equal(counter(f, "calls"), 1);
	assert_string_equal(f->host.logged, "");
}

static void batches_are_no_larger_than_allowed(void **state)
{
	struct fixture *f = *state;

	open_module(f, "batch_bytes=64K");
	f->host.n_records = 5000;
	work_until_done(f);
	assert_int_equal(f->collector.n_taken, 5000);
	assert_int_equal(f->collector.n_again, 0);
	assert_true(f->collector.n_rpcs > 3);
	for (uint32_t i = 0; i < f->collector.n_rpcs; i++)
		assert_true(f->collector.rpcs[i].len <= (64 << 10) + 5);
}

static void windows_of_the_collector_are_kept(void **state)
{
	struct fixture *f = *state;

	f->collector.window = 1000;
	open_module(f, "calls=1");
	f->host.n_records = 20000;
	work_until_done(f);
	assert_int_equal(f->collector.n_taken, 20000);
}

static void batch_waits_until_it_is_due(void **state)
{
	struct fixture *f = *state;
	int64_t begin = now_ms();

	open_module(f, "batch_delay=300ms");
	f->host.n_records = 1;
	while (f->host.acked < 1)
		turn(f, false);
	assert_true(now_ms() - begin >= 300);
	assert_int_equal(f->collector.n_rpcs, 1);
}

/* The first is not answered: how many come at a time? */
static void calls_at_a_time_are_limited(void **state)
{
	struct fixture *f = *state;

	f->collector.answer = ANSWER_NEVER;
	open_module(f, "calls=3&batch_bytes=64K");
	f->host.n_records = 20000;
	work_until_calls(f, 3);
	for (int i = 0; i < 50; i++)
		turn(f, true);
	assert_int_equal(f->collector.n_rpcs, 3);
	assert_int_equal(f->host.acked, 0);
}

static void answers_count_in_order(void **state)
{
	struct fixture *f = *state;
	struct collector *c = &f->collector;

	c->answer = ANSWER_NEVER;
	open_module(f, "calls=2&batch_bytes=64K");
	f->host.n_records = 20000;
	work_until_calls(f, 2);
	for (int i = 0; i < 50; i++)
		turn(f, true);
	c->answer = ANSWER_STATUS;
	c->status = "0";
	collector_answer(c, &c->rpcs[1]);
	for (int i = 0; i < 50; i++)
		turn(f, true);
	assert_int_equal(f->host.acked, 0);
	collector_answer(c, &c->rpcs[0]);
	for (int64_t end = now_ms() + 20000; !f->host.acked;) {
		turn(f, true);
		assert_true(now_ms() < end);
	}
}

/* ---- Failures ----------------------------------------------------------------------- */

static void fail_then_recover(struct fixture *f, const char *logged)
{
	open_module(f, "");
	f->host.n_records = 100;
	work_until_logged(f, logged);
	assert_int_equal(f->host.acked, 0);
	f->collector.answer = ANSWER_OK;
	f->collector.is_early = false;
	f->collector.is_unordered = true;
	work_until_done(f);
	assert_int_equal(f->collector.n_taken, 100);
	assert_int_equal(test_host_lines(&f->host), 2);
	assert_non_null(strstr(f->host.logged, "accepts records again"));
	assert_true(counter(f, "failed_calls") > 0);
	assert_int_equal(f->host.refused, 0);
}

static void status_of_http_is_told(void **state)
{
	struct fixture *f = *state;

	f->collector.answer = ANSWER_HTTP;
	f->collector.status = "502";
	fail_then_recover(f, "UNAVAILABLE: HTTP status 502; trying again");
}

static void answer_without_status_is_told(void **state)
{
	struct fixture *f = *state;

	f->collector.answer = ANSWER_HTTP;
	f->collector.status = "200";
	fail_then_recover(f, "UNKNOWN: the answer has no status");
}

static void reset_is_told(void **state)
{
	struct fixture *f = *state;

	f->collector.answer = ANSWER_RESET;
	f->collector.error = NGHTTP2_ENHANCE_YOUR_CALM;
	fail_then_recover(f, "the call was reset: ENHANCE_YOUR_CALM");
}

static void words_of_the_collector_are_made_readable(void **state)
{
	struct fixture *f = *state;

	f->collector.answer = ANSWER_STATUS;
	f->collector.status = "16";
	f->collector.message = "no%20token%0a";
	fail_then_recover(f, "UNAUTHENTICATED: no token?; trying");
}

/* It need not read what it does not want. */
static void answer_may_come_before_the_end_of_the_call(void **state)
{
	struct fixture *f = *state;

	f->collector.is_early = true;
	f->collector.answer = ANSWER_STATUS;
	f->collector.status = "14";
	f->collector.window = 100;
	fail_then_recover(f, "UNAVAILABLE; trying again");
}

static void idle_connection_may_be_closed(void **state)
{
	struct fixture *f = *state;

	open_module(f, "");
	f->host.n_records = 10;
	work_until_done(f);
	collector_hang_up(&f->collector);
	f->host.n_records = 20;
	work_until_done(f);
	assert_int_equal(f->collector.n_again, 0);
	assert_int_equal(counter(f, "connections"), 2);
	assert_string_equal(f->host.logged, "");
}

static void connection_that_breaks_takes_its_calls_along(void **state)
{
	struct fixture *f = *state;

	f->collector.answer = ANSWER_NEVER;
	open_module(f, "calls=2&batch_bytes=64K");
	f->host.n_records = 2000;
	work_until_calls(f, 2);
	collector_hang_up(&f->collector);
	f->collector.answer = ANSWER_OK;
	work_until_done(f);
	assert_int_equal(f->collector.n_taken, 2000);
	assert_int_equal(f->collector.n_again, 0);
	assert_int_equal(counter(f, "connections"), 2);
	assert_int_equal(counter(f, "failed_calls"), 0);
}

/* The first call is below the number that it names, the second is not. */
static void collector_that_goes_away_finishes_what_it_has(void **state)
{
	struct fixture *f = *state;
	struct collector *c = &f->collector;

	c->answer = ANSWER_NEVER;
	open_module(f, "calls=2&batch_bytes=64K");
	f->host.n_records = 2000;
	work_until_calls(f, 2);
	for (int i = 0; i < 50; i++)
		turn(f, true);
	nghttp2_submit_goaway(c->h2, 0, c->rpcs[0].id, NGHTTP2_NO_ERROR, NULL, 0);
	for (int i = 0; i < 50; i++)
		turn(f, true);
	assert_int_equal(f->host.acked, 0);
	c->answer = ANSWER_OK;
	collector_answer(c, &c->rpcs[0]);
	work_until_done(f);
	assert_int_equal(c->n_taken, 2000);
	assert_int_equal(c->n_again, 0);
	assert_int_equal(counter(f, "connections"), 2);
	assert_string_equal(f->host.logged, "");
}

static void collector_that_goes_away_in_anger_is_told(void **state)
{
	struct fixture *f = *state;

	f->collector.answer = ANSWER_NEVER;
	open_module(f, "");
	f->host.n_records = 10;
	work_until_calls(f, 1);
	nghttp2_submit_goaway(f->collector.h2, 0, 0, NGHTTP2_ENHANCE_YOUR_CALM,
			      NULL, 0);
	work_until_logged(f, "it ended the session: ENHANCE_YOUR_CALM");
	f->collector.answer = ANSWER_OK;
	work_until_done(f);
	assert_int_equal(f->collector.n_again, 0);
}

static void session_that_ends_at_once_is_reported(void **state)
{
	struct fixture *f = *state;

	f->collector.is_leaving = true;
	open_module(f, "");
	f->host.n_records = 100;
	work_until_logged(f, "ends each session before it accepts a record");
	assert_int_equal(f->host.acked, 0);
	assert_int_equal(test_host_lines(&f->host), 1);
	f->collector.is_leaving = false;
	work_until_done(f);
	assert_non_null(strstr(f->host.logged, "connected to 127.0.0.1"));
	assert_int_equal(test_host_lines(&f->host), 2);
}

/* ---- Answers that are none -------------------------------------------------------- */

static void trailers_acknowledge(void **state)
{
	struct fixture *f = *state;

	f->collector.answer = ANSWER_TRAILERS;
	open_module(f, "");
	f->host.n_records = 100;
	work_until_done(f);
	assert_int_equal(f->collector.n_taken, 100);
	assert_string_equal(f->host.logged, "");
}

static void status_before_the_end_acknowledges_nothing(void **state)
{
	struct fixture *f = *state;

	f->collector.answer = ANSWER_EARLY_STATUS;
	fail_then_recover(f, "the call was reset: INTERNAL_ERROR");
}

static void status_beside_an_error_of_http_acknowledges_nothing(void **state)
{
	struct fixture *f = *state;

	f->collector.answer = ANSWER_HTTP_OK;
	f->collector.status = "404";
	fail_then_recover(f, "UNAVAILABLE: HTTP status 404");
}

/* The call is larger than the window, so the rest of it was never read. */
static void answer_to_half_a_call_acknowledges_nothing(void **state)
{
	struct fixture *f = *state;

	f->collector.is_early = true;
	f->collector.answer = ANSWER_STATUS;
	f->collector.status = "0";
	open_module(f, "");
	f->host.n_records = 20000;
	work_until_logged(f, "it answered before it had received the whole call");
	assert_int_equal(f->host.acked, 0);
	f->collector.answer = ANSWER_OK;
	f->collector.is_early = false;
	work_until_done(f);
	assert_int_equal(f->collector.n_taken, 20000);
}

/* ---- Records that are refused ------------------------------------------------------- */

static void nothing_is_refused_when_all_is(void **state)
{
	static const char *const statuses[] = { "3", "13", "2", "11", "15" };

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		struct fixture *f = *state;

		f->collector.answer = ANSWER_STATUS;
		f->collector.status = statuses[i];
		open_module(f, "");
		f->host.n_records = 200;
		work_until_logged(f, "does not accept records");
		assert_int_equal(f->host.acked, 0);
		f->collector.answer = ANSWER_OK;
		f->collector.is_unordered = true;
		work_until_done(f);
		assert_int_equal(f->collector.n_taken, 200);
		assert_int_equal(f->host.refused, 0);
		assert_int_equal(test_host_lines(&f->host), 2);
		if (i + 1 < ARRAY_SIZE(statuses)) {
			tear_down(state);
			set_up(state);
		}
	}
}

/* @n_bad of @every are, and nothing else is missing, or comes twice. */
static void refuse_some(struct fixture *f, const char *status, uint64_t every,
			uint64_t n_bad)
{
	struct collector *c = &f->collector;

	c->answer = ANSWER_PICKY;
	c->status = status;
	c->message = "Exception deserializing request!";
	c->bad_every = every;
	c->n_bad = n_bad;
	c->is_unordered = true;
	open_module(f, "calls=2&batch_bytes=64K");
	f->host.n_records = 5000;
	work_until_done(f);
	assert_int_equal(f->host.refused, 5000 / every * n_bad);
	assert_int_equal(c->n_taken, 5000 - f->host.refused);
	assert_int_equal(c->n_again, 0);
	assert_non_null(strstr(f->host.logged, "refuses a record permanently: "));
	assert_non_null(strstr(f->host.logged,
			       "it is dropped: protocol 17 from 0.0.0.0"));
	assert_int_equal(test_host_lines(&f->host), 1);
}

static void records_that_break_the_collector_are_the_only_ones_missing(void **state)
{
	refuse_some(*state, "13", 1000, 1);
}

static void records_that_are_invalid_are_the_only_ones_missing(void **state)
{
	refuse_some(*state, "3", 500, 1);
}

static void records_in_a_row_are_the_only_ones_missing(void **state)
{
	refuse_some(*state, "2", 2500, 10);
}

/* ---- Slow collectors ----------------------------------------------------------------- */

/* It answers each call a while after it began. */
static void slow_collector_gets_all(void **state)
{
	struct fixture *f = *state;
	struct collector *c = &f->collector;

	c->answer = ANSWER_OK;
	c->delay_ms = 350;
	c->is_unordered = true;
	open_module(f, "deadline=200ms&batch_bytes=64K&calls=2");
	f->host.n_records = 5000;
	work_until_done(f);
	assert_int_equal(f->host.acked, 5000);
	assert_in_range(c->n_taken, 5000, 9000);
	assert_in_range(counter(f, "failed_calls"), 1, 2);
	assert_int_equal(f->host.refused, 0);
}

static void closing_does_not_wait(void **state)
{
	struct fixture *f = *state;

	f->collector.answer = ANSWER_NEVER;
	open_module(f, "");
	f->host.n_records = 20000;
	work_until_calls(f, 1);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(call_is_what_grpc_wants),
		test(batches_are_no_larger_than_allowed),
		test(windows_of_the_collector_are_kept),
		test(batch_waits_until_it_is_due),
		test(calls_at_a_time_are_limited),
		test(answers_count_in_order),
		test(status_of_http_is_told),
		test(answer_without_status_is_told),
		test(reset_is_told),
		test(words_of_the_collector_are_made_readable),
		test(answer_may_come_before_the_end_of_the_call),
		test(idle_connection_may_be_closed),
		test(connection_that_breaks_takes_its_calls_along),
		test(collector_that_goes_away_finishes_what_it_has),
		test(collector_that_goes_away_in_anger_is_told),
		test(session_that_ends_at_once_is_reported),
		test(trailers_acknowledge),
		test(status_before_the_end_acknowledges_nothing),
		test(status_beside_an_error_of_http_acknowledges_nothing),
		test(answer_to_half_a_call_acknowledges_nothing),
		test(nothing_is_refused_when_all_is),
		test(records_that_break_the_collector_are_the_only_ones_missing),
		test(records_that_are_invalid_are_the_only_ones_missing),
		test(records_in_a_row_are_the_only_ones_missing),
		test(slow_collector_gets_all),
		test(closing_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
