/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Turns, queues and verdicts as JSON. */
#include "lib_test.h"

#include "record/any.h"

enum { T = 1700000000, TEXT_MAX = 4096 };
#define AT(ns) (T * 1000000000LL + (ns))

static struct netobs_turn make_turn(void)
{
	return (struct netobs_turn){
		.record = { .sz = sizeof(struct netobs_turn),
			    .type = NETOBS_RECORD_TURN,
			    .has = NETOBS_TURN_HAS_SEND | NETOBS_TURN_HAS_END |
				   NETOBS_TURN_HAS_LIMITS |
				   NETOBS_TURN_HAS_PROCESS,
			    .time_ns = AT(123456789) },
		.connection = 7,
		.offset = -5,
		.bytes = 200,
		.seq = 99,
		.one_of = 1,
		.protocol = 6,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.dst = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
		.src_port = 40000,
		.dst_port = 80,
		.written_ns = AT(123460000),
		.out_ns = AT(123470000),
		.end_ns = AT(123480000),
		.part_ns = { 3211 },
		.unknown_parts = 1 << NETOBS_JOURNEY_READER,
		.attempts = 1,
		.limit_ns = { 10, 0, 0, 5 },
		.sent_bytes = 200,
		.out_bytes = 200,
		.largest_sent = 200,
		.pid = 1234,
		.tid = 1234,
		.command = "curl",
	};
}

TEST(what_was_not_seen_is_left_out)
{
	const struct netobs_turn turn = make_turn();
	char text[TEXT_MAX];

	assert_true(record_json(&turn.record, text, sizeof(text)) > 0);
	assert_string_equal(
		text,
		"{\"type\":\"turn\",\"TimeMs\":1700000000123,"
		"\"TimeNs\":1700000000123456789,\"Kind\":\"message\","
		"\"Connection\":7,\"Direction\":0,\"Offset\":-5,\"Bytes\":200,"
		"\"Seq\":99,\"Proto\":6,\"Sends\":true,\"Ended\":true,"
		"\"SrcAddr\":\"10.0.0.2\","
		"\"DstAddr\":\"192.0.2.1\",\"SrcPort\":40000,\"DstPort\":80,"
		"\"WrittenAfterNs\":3211,\"OutAfterNs\":13211,"
		"\"TotalNs\":23211,\"PartsNs\":[3211],"
		"\"UnknownParts\":[\"reader\"],\"Attempts\":1,"
		"\"LimitsNs\":[10,0,0,5],\"SentBytes\":200,\"Pid\":1234,"
		"\"Command\":\"curl\"}");
}

TEST(a_queue_has_shares)
{
	const struct netobs_queue queue = {
		.record = { .sz = sizeof(queue),
			    .type = NETOBS_RECORD_QUEUE,
			    .time_ns = AT(5) },
		.end_ns = AT(305),
		.kind = NETOBS_QUEUE_QDISC,
		.waited_ns = 200,
		.amount = 1000,
		.rest = 100,
		.ifindex = 2,
		.interface = "eth0",
		.n_shares = 2,
		.shares = { { .amount = 600,
			      .protocol = 17,
			      .src = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
			      .dst = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
			      .dst_port = 53,
			      .pid = 7,
			      .command = "dig" },
			    { .amount = 300, .pid = 8, .command = "make" } },
	};
	char text[TEXT_MAX];

	assert_true(record_json(&queue.record, text, sizeof(text)) > 0);
	assert_string_equal(
		text, "{\"type\":\"queue\",\"TimeMs\":1700000000000,"
		      "\"TimeNs\":1700000000000000005,\"TotalNs\":300,"
		      "\"Kind\":\"qdisc\",\"WaitedNs\":200,\"Amount\":1000,"
		      "\"Rest\":100,\"Interface\":\"eth0\",\"IfIndex\":2,"
		      "\"Shares\":[{\"Amount\":600,\"Proto\":17,"
		      "\"SrcAddr\":\"10.0.0.2\",\"DstAddr\":\"192.0.2.1\","
		      "\"SrcPort\":0,\"DstPort\":53,\"Pid\":7,\"Command\":\"dig\"},"
		      "{\"Amount\":300,\"Pid\":8,\"Command\":\"make\"}]}");
}

TEST(the_uplink_has_what_differs_and_threads_have_phases)
{
	struct netobs_turn turn = make_turn();
	char text[TEXT_MAX];

	turn.uplink_ifindex = 3;
	memcpy(turn.wire_src, turn.dst, sizeof(turn.wire_src));
	memcpy(turn.wire_dst, turn.dst, sizeof(turn.wire_dst));
	turn.wire_src_port = 1024;
	turn.record.has |= NETOBS_TURN_HAS_THREADS;
	turn.thread_ns[NETOBS_TURN_THINKING][NETOBS_THREAD_WAIT] = 9;
	assert_true(record_json(&turn.record, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "\"UplinkIfIndex\":3,"
				     "\"WireSrcAddr\":\"192.0.2.1\","
				     "\"WireSrcPort\":1024,\"WireDstPort\":0,"));
	assert_non_null(strstr(text, "\"ThreadsNs\":[0,0,0,0,0,0,0,0,0,9]"));
}

TEST(a_verdict_has_parts_and_names)
{
	const struct netobs_verdict verdict = {
		.record = { .sz = sizeof(verdict),
			    .type = NETOBS_RECORD_VERDICT,
			    .time_ns = AT(7) },
		.end_ns = AT(1007),
		.client = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.server = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
		.server_port = 80,
		.protocol = 6,
		.place = NETOBS_PLACE_SERVER_HOST,
		.cause = NETOBS_CAUSE_CPU,
		.certainty = NETOBS_LIKELY,
		.missing = NETOBS_MISSING_HOST | NETOBS_MISSING_RECORDS,
		.connections = 2,
		.turns = 20,
		.blamed_ns = 800,
		.all_blamed_ns = 900,
		.clock_ns = -50,
		.clock_bound_ns = 3,
		.server_host = "hostb",
		.n_parts = 1,
		.parts = { { .place = NETOBS_PLACE_SERVER_HOST,
			     .cause = NETOBS_CAUSE_CPU,
			     .now_ns = 45,
			     .blamed_ns = 800 } },
	};
	char text[TEXT_MAX];

	assert_true(record_json(&verdict.record, text, sizeof(text)) > 0);
	assert_string_equal(
		text,
		"{\"type\":\"verdict\",\"TimeMs\":1700000000000,"
		"\"TimeNs\":1700000000000000007,\"TotalNs\":1000,"
		"\"SrcAddr\":\"10.0.0.2\",\"DstAddr\":\"192.0.2.1\","
		"\"DstPort\":80,\"Proto\":6,\"Place\":\"server host\","
		"\"Cause\":\"cpu\",\"Certainty\":\"likely\","
		"\"Missing\":[\"host\",\"records\"],\"Connections\":2,"
		"\"Turns\":20,\"TurnsBefore\":0,\"TurnNs\":0,"
		"\"TurnBeforeNs\":0,\"BlamedNs\":800,\"AllBlamedNs\":900,"
		"\"ClockNs\":-50,\"ClockBoundNs\":3,\"DstNodeName\":\"hostb\","
		"\"Parts\":[{\"Place\":\"server host\",\"Cause\":\"cpu\","
		"\"NowNs\":45,\"BeforeNs\":0,\"MostNs\":0,\"BlamedNs\":800}]}");
}
