/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Journeys as JSON. */
#include "lib_test.h"

#include "record/any.h"

static struct netobs_journey make_journey(void)
{
	return (struct netobs_journey){
		.record = { .sz = sizeof(struct netobs_journey),
			    .type = NETOBS_RECORD_JOURNEY,
			    .has = NETOBS_JOURNEY_HAS_SEND |
				   NETOBS_JOURNEY_HAS_OFFSET,
			    .time_ns = 1700000000123456789 },
		.connection = 7,
		.offset = -5,
		.length = 200,
		.seq = 99,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.dst = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
		.src_port = 40000,
		.dst_port = 80,
		.src_pid = 1234,
		.src_command = "curl",
		.direction = 1,
		.n_steps = 2,
		.n_attempts = 1,
		.end_ns = 1700000000123460000,
		.part_ns = { [NETOBS_JOURNEY_TCP] = 3211 },
		.unknown_parts = ~0U << NETOBS_JOURNEY_RECOVERY &
				 ((1U << NETOBS_JOURNEY_PARTS) - 1),
		.steps = { { .time_ns = 1700000000123456789,
			     .cpu = 1,
			     .pid = 1234,
			     .netns_inode = 4026531840,
			     .layer = NETOBS_TRACE_LAYER_SOCKET,
			     .point = NETOBS_TRACE_SEND,
			     .command = "curl" },
			   { .time_ns = 1700000000123460000,
			     .ifindex = 2,
			     .layer = NETOBS_TRACE_LAYER_DEVICE,
			     .point = NETOBS_TRACE_QUEUE,
			     .attempt = 1,
			     .interface = "eth0" } },
	};
}

TEST(what_is_not_known_is_left_out)
{
	const struct netobs_journey journey = make_journey();
	char text[NETOBS_TRACE_JSON_MAX];

	assert_true(record_json(&journey.record, text, sizeof(text)) > 0);
	assert_string_equal(
		text, "{\"type\":\"journey\",\"TimeMs\":1700000000123,"
		      "\"TimeNs\":1700000000123456789,\"Connection\":7,"
		      "\"Direction\":1,\"Offset\":-5,\"Bytes\":200,\"Seq\":99,"
		      "\"SrcAddr\":\"10.0.0.2\",\"DstAddr\":\"192.0.2.1\","
		      "\"SrcPort\":40000,\"DstPort\":80,\"SrcPid\":1234,"
		      "\"SrcCommand\":\"curl\",\"TotalNs\":3211,\"Attempts\":1,"
		      "\"Drops\":0,\"WriteNs\":0,\"TcpNs\":3211,"
		      "\"UnknownParts\":[\"recovery\",\"qdisc\",\"device\","
		      "\"network\",\"forward\",\"stack\",\"gap\",\"reader\"],"
		      "\"StepsCut\":false,\"Steps\":["
		      "{\"Point\":\"send\",\"Layer\":\"socket\",\"AfterNs\":0,"
		      "\"Cpu\":1,\"Pid\":1234,\"Command\":\"curl\","
		      "\"NetnsInode\":4026531840},"
		      "{\"Point\":\"queue\",\"Layer\":\"device\",\"AfterNs\":3211,"
		      "\"Attempt\":1,\"Cpu\":0,\"Pid\":0,\"Interface\":\"eth0\","
		      "\"IfIndex\":2}]}");
}

TEST(what_is_known_is_there_also_as_0)
{
	struct netobs_journey journey = make_journey();
	char text[NETOBS_TRACE_JSON_MAX];

	journey.record.has |= NETOBS_JOURNEY_HAS_READ |
			      NETOBS_JOURNEY_HAS_ACKED | NETOBS_JOURNEY_HAS_CUT;
	journey.acked_ns = 1700000000123470000;
	journey.alert_ns = 1700000000123400000;
	strcpy(journey.alert, "slow");
	journey.unknown_parts = 0;
	journey.unknown_ns = 12;
	memset(journey.dst_command, 'x', sizeof(journey.dst_command));
	assert_true(record_json(&journey.record, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "\"DstPid\":0,\"DstCommand\":"
				     "\"xxxxxxxxxxxxxxxx\",\"TotalNs\":3211,"
				     "\"AckedTimeNs\":1700000000123470000,"));
	assert_non_null(strstr(text, "\"Drops\":0,\"Alert\":\"slow\","
				     "\"AlertTimeNs\":1700000000123400000,"));
	assert_non_null(strstr(text, "\"ForwardNs\":0,\"StackNs\":0,"
				     "\"GapNs\":0,\"ReaderNs\":0,"
				     "\"UnknownNs\":12,\"StepsCut\":true,"));
}

/* Also one from elsewhere, with values that mean nothing. */
TEST(the_longest_one_fits)
{
	char text[NETOBS_TRACE_JSON_MAX];
	struct netobs_journey journey;

	memset(&journey, 0xff, sizeof(journey));
	journey.record.type = NETOBS_RECORD_JOURNEY;
	for (int i = 0; i < NETOBS_JOURNEY_STEPS_MAX; i++) {
		struct netobs_journey_step *step = &journey.steps[i];

		step->point = NETOBS_TRACE_RETRANSMIT;
		step->layer = NETOBS_TRACE_LAYER_SOCKET;
		memset(step->command, 1, sizeof(step->command));
		memset(step->interface, 1, sizeof(step->interface));
	}
	assert_true(record_json(&journey.record, text, sizeof(text)) > 0);
	journey.steps[0].point = journey.steps[0].layer = UINT8_MAX;
	assert_true(record_json(&journey.record, text, sizeof(text)) > 0);
	assert_int_equal(record_json(&journey.record, text, 100), -ENOBUFS);
}
