// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Questions and their answers: the time that an application takes. */
#include "segments.h"

static void ask(uint32_t *at, uint32_t answered)
{
	see(100 * MS, A, ACK, *at, answered, 50);
	see(0, A, ACK | PSH, *at + 50, answered, 50);
	*at += 100;
}

/* For longer than a round-trip time is kept, over a way of 10 ms. */
static void ask_for_long(bool is_acked_first)
{
	uint32_t asked = 101, answered = 501;

	for (int i = 0; i < 300; i++) {
		ask(&asked, answered);
		if (is_acked_first)
			see(10 * MS, B, ACK, answered, asked, 0);
		see(30 * MS + (is_acked_first ? 0 : 10 * MS), B, ACK | PSH,
		    answered, asked, 1000);
		answered += 1000;
		see(1 * MS, A, ACK, asked, answered, 0);
	}
}

TEST(the_way_to_the_server_is_no_time_of_the_application)
{
	for (int is_acked_first = 0; is_acked_first < 2; is_acked_first++) {
		shake_hands();
		ask_for_long(is_acked_first);
		assert_true(conn_knows_client(&conn));
		assert_int_equal(conn_client(&conn), A);
		assert_ns(conn_path(&conn, A), 10 * MS);
		assert_ns(conn_app_latency(body.stats[B].turn.last,
					   conn_path(&conn, A)),
			  30 * MS);
		/* As found open, with equal ports. */
		body.stats[A].handshake = 0;
		head.opener = CONN_NEITHER;
		assert_int_equal(!!conn_path(&conn, A), is_acked_first);
		head.state[A] = head.state[B] = 0;
		assert_false(conn_knows_client(&conn));
		body.key.src_port = 1;
		assert_true(conn_knows_client(&conn));
	}
	assert_int_equal(conn_app_latency(5, 7), 0);
}

TEST(streams_and_pipelines_have_no_turns)
{
	uint32_t a = 101, b = 501;

	shake_hands();
	for (int i = 0; i < 100; i++) { /* each acknowledges all but the newest */
		see(1 * MS, A, ACK | PSH, a, i ? b - 100 : b, 100);
		a += 100;
		see(1 * MS, B, ACK | PSH, b, a - 100, 100);
		b += 100;
	}
	assert_int_equal(body.stats[A].turn.n + body.stats[B].turn.n, 0);
	assert_true(body.stats[B].overlaps > 90);
}
