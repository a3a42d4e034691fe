// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_test.h"

#include "cli/trace/trace_summary.h"

#include <time.h>

#define START_NS 1700000000123456789

static const uint8_t client[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
static const uint8_t server[16] = { 0xfd, [15] = 2 };

static struct netobs_journey make_journey(void)
{
	struct netobs_journey journey = {
		.record = { .sz = sizeof(journey),
			    .has = NETOBS_JOURNEY_HAS_SEND |
				   NETOBS_JOURNEY_HAS_READ,
			    .time_ns = START_NS },
		.offset = 1000,
		.length = 200,
		.src_port = 40000,
		.dst_port = 80,
		.n_steps = 2,
		.n_attempts = 1,
		.end_ns = START_NS + 61200,
		.part_ns = { [NETOBS_JOURNEY_TCP] = 19000, [NETOBS_JOURNEY_READER] = 42200 },
		.steps = { { .pid = 12, .command = "curl" },
			   { .pid = 34, .command = "nginx" } },
	};

	memcpy(journey.src, client, sizeof(client));
	memcpy(journey.dst, server, sizeof(server));
	return journey;
}

static void expect(const struct netobs_journey *journey, const char *text)
{
	char line[TRACE_LINE_MAX];

	trace_line_journey(line, journey);
	assert_string_equal(line, text);
}

TEST(a_journey_in_a_line)
{
	const struct netobs_journey journey = make_journey();

	expect(&journey, "22:13:20.123456789 10.0.0.1:40000 > [fd00::2]:80 "
			 "+1000 200 B in 61.2 us: tcp 19.0 us, "
			 "reader 42.2 us; curl[12] > nginx[34]");
}

TEST(what_went_wrong_and_what_is_not_known)
{
	struct netobs_journey journey = make_journey();

	journey.record.has = NETOBS_JOURNEY_HAS_READ;
	journey.offset = -7;
	journey.n_attempts = 3;
	journey.n_drops = 1;
	journey.part_ns[NETOBS_JOURNEY_READER] = 0;
	journey.unknown_ns = 42200;
	journey.unknown_parts = 1U << NETOBS_JOURNEY_WRITE |
				1U << NETOBS_JOURNEY_READER;
	memcpy(journey.steps[1].command, "evil\033[2Jxxxxxxxx", 16);
	expect(&journey, "22:13:20.123456789 10.0.0.1:40000 > [fd00::2]:80 "
			 "-7 200 B in 61.2 us: tcp 19.0 us, unknown 42.2 us "
			 "(write, reader); 3 attempts; 1 drop; "
			 "> evil?[2Jxxxxxxxx[34]");
}

TEST(an_event_in_a_line)
{
	struct netobs_trace_event event = {
		.record = { .sz = sizeof(event), .time_ns = START_NS },
		.offset = 0,
		.length = 1448,
		.seq = 7,
		.ack = 8,
		.src_port = 40000,
		.dst_port = 80,
		.layer = NETOBS_TRACE_LAYER_DEVICE,
		.point = NETOBS_TRACE_DROP,
		.tcp_flags = 0x18,
		.cpu = 1,
		.pid = 99,
		.netns_inode = 4026531840,
		.command = "ksoftirqd/1",
		.interface = "eth0",
	};
	char line[TRACE_LINE_MAX];

	memcpy(event.src, client, sizeof(client));
	memcpy(event.dst, server, sizeof(server));
	event.record.has = NETOBS_TRACE_HAS_REASON;
	strcpy(event.cause, "SKB_DROP_REASON_NETFILTER_DROP");
	trace_line_event(line, &event);
	assert_string_equal(line,
			    "22:13:20.123456789 device drop       10.0.0.1:40000 > "
			    "[fd00::2]:80 +0 1.45 kB seq 7 ack 8 PA eth0 "
			    "netns 4026531840 cpu 1 ksoftirqd/1[99] "
			    "SKB_DROP_REASON_NETFILTER_DROP");
	event.record.has |= NETOBS_TRACE_HAS_OWNER;
	event.owner_pid = 812;
	strcpy(event.owner_command, "curl");
	trace_line_event(line, &event);
	assert_non_null(strstr(line, " ksoftirqd/1[99] for curl[812] SKB_"));
	event.pid = event.owner_pid;
	trace_line_event(line, &event);
	assert_null(strstr(line, " for "));
}

/* Of a library that knows more, or of nobody. */
TEST(any_values_are_a_line)
{
	struct netobs_trace_event event;
	struct netobs_journey journey;
	char line[TRACE_LINE_MAX];

	memset(&event, 0xff, sizeof(event));
	memset(&journey, 0xff, sizeof(journey));
	trace_line_event(line, &event);
	assert_true(strlen(line) < TRACE_LINE_MAX);
	trace_line_journey(line, &journey);
	assert_true(strlen(line) < TRACE_LINE_MAX);
	for (const char *c = line; *c; c++)
		assert_in_range(*c, ' ', '~');
}

int main(void)
{
	setenv("TZ", "UTC", 1);
	tzset();
	return tests_run(NULL, NULL);
}
