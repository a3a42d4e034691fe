// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What programs report about a socket, as a record. */
#include "lib_test.h"

#include "who/sessions.h"

#include <netinet/tcp.h>

static const struct clock wall_is_1000_ahead = { .wall_offset = 1000 };

static struct netobs_session fill(const struct session_event *event)
{
	const struct session_source source = {
		.clock = &wall_is_1000_ahead,
		.cgroups_fd = -1,
		.tick_ns = 4 * NSEC_PER_MSEC,
	};
	struct netobs_session session;

	memset(&session, 0x5a, sizeof(session));
	session_fill(&source, event, &session);
	assert_int_equal(session.record.sz, sizeof(session));
	assert_int_equal(session.record.type, NETOBS_RECORD_SESSION);
	return session;
}

TEST(what_is_not_known_is_absent)
{
	const struct session_event event = { .time_ns = 5,
					     .min_rtt_us = UINT32_MAX };
	struct netobs_session session = fill(&event);

	assert_int_equal(session.record.has, 0);
	assert_int_equal(session.record.time_ns, 1005);
	assert_int_equal(session.end_ns, 1005);
	assert_int_equal(session.ended, NETOBS_SESSION_OPEN);
	assert_string_equal(session.process, "");
	assert_string_equal(session.cgroup_path, "");
}

TEST(what_is_known_is_there_in_its_units)
{
	const struct session_event event = {
		.time_ns = 50,
		.start_ns = 20,
		.end = { .time_ns = 40, .state = TCP_LAST_ACK },
		.owner = { .pid_tgid = 7ULL << 32 | 8,
			   .by = SESSION_BY_USING,
			   .uid = 9,
			   .comm = "a name of 16 byt" },
		.srtt_us = 3,
		.rttvar_us = 2,
		.min_rtt_us = 1,
		.busy_ticks = 5,
		.has_fin = 1,
	};
	struct netobs_session session = fill(&event);

	assert_int_equal(session.record.has,
			 NETOBS_SESSION_HAS_START | NETOBS_SESSION_HAS_PROCESS |
				 NETOBS_SESSION_HAS_RTT |
				 NETOBS_SESSION_HAS_MIN_RTT |
				 NETOBS_SESSION_HAS_FIN);
	assert_int_equal(session.start_ns, 1020);
	assert_int_equal(session.end_ns, 1040);
	assert_int_equal(session.ended, NETOBS_SESSION_FIN);
	assert_int_equal(session.pid, 7);
	assert_int_equal(session.tid, 8);
	assert_int_equal(session.uid, 9);
	assert_memory_equal(session.process, event.owner.comm, 16);
	assert_int_equal(session.rtt_ns, 3000);
	assert_int_equal(session.rtt_variation_ns, 2000);
	assert_int_equal(session.min_rtt_ns, 1000);
	assert_int_equal(session.busy_us, 20000);
}

TEST(endings_follow_from_the_error_and_the_state_before)
{
	static const struct {
		uint16_t error;
		uint8_t state;
		enum netobs_session_ended ended;
	} endings[] = {
		{ 0, TCP_LAST_ACK, NETOBS_SESSION_FIN },
		{ 0, TCP_FIN_WAIT2, NETOBS_SESSION_FIN },
		{ 0, TCP_CLOSING, NETOBS_SESSION_FIN },
		{ 0, TCP_FIN_WAIT1, NETOBS_SESSION_ABORTED },
		{ 0, TCP_ESTABLISHED, NETOBS_SESSION_ABORTED },
		{ 0, TCP_CLOSE_WAIT, NETOBS_SESSION_ABORTED },
		{ 0, TCP_SYN_SENT, NETOBS_SESSION_ABORTED },
		{ ECONNABORTED, TCP_ESTABLISHED, NETOBS_SESSION_ABORTED },
		{ ECONNRESET, TCP_ESTABLISHED, NETOBS_SESSION_RESET },
		{ ECONNRESET, TCP_LAST_ACK, NETOBS_SESSION_RESET },
		{ EPIPE, TCP_CLOSE_WAIT, NETOBS_SESSION_RESET },
		{ ECONNREFUSED, TCP_SYN_SENT, NETOBS_SESSION_REFUSED },
		{ ETIMEDOUT, TCP_ESTABLISHED, NETOBS_SESSION_TIMEOUT },
		{ EHOSTUNREACH, TCP_SYN_SENT, NETOBS_SESSION_FAILED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		const struct session_end end = { .time_ns = 1,
						 .error = endings[i].error,
						 .state = endings[i].state };

		assert_int_equal(session_ended(&end), endings[i].ended);
		assert_non_null(netobs_session_ended_name(session_ended(&end)));
	}
}
