// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* OTLP over gRPC: what answers say of records is what becomes of them. */
#include "lib_module.h"

#include "lib_wait.h"
#include "base/clock_ms.h"

/* google.rpc.Status with a RetryInfo. */
#define DETAILS_OF_3_S                                                     \
	"CA4SBWxhdGVyGjAKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRy" \
	"eUluZm8SBAoCCAM"

/* An ExportLogsServiceResponse behind its prefix. */
#define REPLY(text) ((const char *)(text)), sizeof(text) - 1

static void open_otlp(struct module_fixture *f, const char *options,
		      const char *reply, size_t len)
{
	f->kind = "otlp";
	f->collector.answer = ANSWER_LOGS;
	f->collector.reply = reply;
	f->collector.reply_len = len;
	module_open(f, options);
}

MODULE_TEST(call_is_an_export_of_logs)
{
	const struct rpc *rpc = f->collector.rpcs;

	open_otlp(f, "", REPLY("\0\0\0\0\0"));
	f->host.n_records = 10;
	module_work_until_done(f);
	assert_string_equal(
		rpc->path,
		"/opentelemetry.proto.collector.logs.v1.LogsService/Export");
	assert_string_equal(rpc->type, "application/grpc");
	assert_int_equal(f->collector.n_taken, 10);
	assert_int_equal(f->host.refused, 0);
	assert_string_equal(f->host.logged, "");
}

static const struct netobs_record *make_group(uint64_t n)
{
	static struct netobs_group_record group = {
		.record = { .sz = sizeof(group), .type = NETOBS_RECORD_GROUP },
	};

	group.bytes = n;
	return &group.record;
}

/* What the collector says of 10 records, and of 20 further ones, of which there is no word. */
static void reject(struct module_fixture *f, const char *reply, size_t len,
		   uint64_t refused, const char *logged)
{
	open_otlp(f, "", reply, len);
	for (uint64_t n = 1; n < 3; n++) {
		f->host.n_records = n == 1 ? 10 : 30;
		module_work_until_done(f);
		assert_int_equal(f->collector.n_rpcs, n);
		assert_int_equal(f->host.refused, n * refused);
		assert_int_equal(test_host_lines(&f->host), 1);
		assert_non_null(strstr(f->host.logged, logged));
	}
}

MODULE_TEST(rejected_records_are_refused_and_the_rest_delivered)
{
	reject(f, REPLY("\0\0\0\0\x09\x0a\x07\x08\x03\x12\x03odd"), 3,
	       "refuses records permanently: partial success: odd; 3 are dropped");
	assert_int_equal(f->collector.n_taken, 30);
}

/* A group is three data points: 7 rejected ones are of three groups. */
MODULE_TEST(rejected_data_points_are_those_of_groups)
{
	f->host.make_other = make_group;
	f->host.host.types = SINK_TYPE(GROUP);
	reject(f, REPLY("\0\0\0\0\x04\x0a\x02\x08\x07"), 3, "");
	assert_string_equal(
		f->collector.rpcs->path,
		"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export");
	assert_int_equal(f->collector.n_taken, 90);
}

MODULE_TEST(a_warning_refuses_nothing)
{
	reject(f, REPLY("\0\0\0\0\x07\x0a\x05\x12\x03old"), 0,
	       "accepts records with a warning: old");
}

MODULE_TEST(no_more_are_refused_than_were_sent)
{
	open_otlp(f, "", REPLY("\0\0\0\0\x05\x0a\x03\x08\xff\x7f"));
	f->host.n_records = 10;
	module_work_until_done(f);
	assert_int_equal(f->host.refused, 10);
	assert_int_equal(f->collector.n_rpcs, 1);
}

/* A server of something else, or an answer that is cut off. */
MODULE_TEST(what_is_no_answer_acknowledges_nothing)
{
	static const struct {
		const char *bytes;
		size_t len;
	} replies[] = {
		{ REPLY("") },			   /* no message */
		{ REPLY("\0\0\0\0\x02{}") },	   /* JSON */
		{ REPLY("\0\0\0\0\x04\x0a\x02") }, /* less than it says */
		{ REPLY("\1\0\0\0\0") },	   /* compressed */
	};
	struct collector *c = &f->collector;

	open_otlp(f, "", replies->bytes, replies->len);
	f->host.n_records = 10;
	for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
		uint32_t calls = c->n_rpcs;

		c->reply = replies[i].bytes;
		c->reply_len = replies[i].len;
		module_work_until_calls(f, calls + 1);
		module_turns(f, 20);
	}
	assert_int_equal(f->host.acked, 0);
	assert_non_null(strstr(f->host.logged,
			       "the answer is not that of /opentelemetry"));
	c->reply = "\0\0\0\0";
	c->reply_len = 5;
	module_work_until_done(f);
	assert_int_equal(f->host.refused, 0);
	assert_int_equal(test_host_lines(&f->host), 2);
}

/* RetryInfo of 3 s, where the first pause would be 1 s at most. */
MODULE_TEST(the_collector_says_how_long_to_wait)
{
	struct collector *c = &f->collector;

	open_otlp(f, "", REPLY("\0\0\0\0\0"));
	c->answer = ANSWER_STATUS;
	c->status = "14";
	c->details = DETAILS_OF_3_S;
	f->host.n_records = 10;
	module_work_until_logged(f, "UNAVAILABLE");
	c->answer = ANSWER_LOGS;
	module_work_until_done(f);
	assert_int_equal(c->n_rpcs, 2);
	assert_true(c->rpcs[1].begun_ms - c->rpcs[0].begun_ms >= 3000);
	assert_int_equal(f->host.refused, 0);
}

MODULE_TEST(an_invalid_record_is_refused_and_the_rest_delivered)
{
	struct collector *c = &f->collector;

	open_otlp(f, "", REPLY("\0\0\0\0\0"));
	c->answer = ANSWER_STATUS;
	c->status = "3";
	f->host.n_records = 8;
	/* Calls of 8, 4, 2, 1; the next one may have begun. */
	await_by(f->host.refused, module_turn(f, true));
	c->answer = ANSWER_LOGS;
	module_work_until_done(f);
	assert_in_range(f->host.refused, 1, 2);
	assert_int_equal(c->n_taken, 8 - f->host.refused);
}
