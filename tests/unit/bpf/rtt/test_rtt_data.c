// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Data and its acknowledgments: which are timed, sent again, or out of order. */
#include "segments.h"

static void see_window(int dir, uint32_t seq, uint32_t ack, uint16_t window)
{
	struct segment segment = make(ACK, seq, ack, 0);

	segment.window = window;
	show(dir, &segment);
}

TEST(a_probe_of_a_closed_window_gives_no_sample)
{
	shake_hands();
	see_window(B, 501, 101, 0);
	see(200 * MS, A, ACK, 101, 501, 1);
	see_window(B, 501, 101, 0);
	see(400 * MS, A, ACK, 101, 501, 1);
	see_window(B, 501, 101, 500);
	see_window(B, 501, 102, 0);
	see_window(B, 501, 102, 500);
	assert_int_equal(body.stats[A].rtt.n, 1);
	assert_int_equal(body.stats[B].zero_windows, 2);
}

/* Data of A from 1000 on, 100 bytes a segment, each acknowledged 10 ms later. */
static void send_hundreds(uint32_t *at, int segments)
{
	for (int i = 0; i < segments; i++) {
		see(1 * S, A, ACK, *at, 500, 100);
		*at += 100;
		see(10 * MS, B, ACK, 500, *at, 0);
	}
}

TEST(a_connection_that_was_open_is_timed_after_two_round_trips)
{
	uint32_t at = 1000;

	begin();
	send_hundreds(&at, 3);
	assert_int_equal(body.stats[A].rtt.n, 0);
	send_hundreds(&at, 1);
	assert_int_equal(body.stats[A].rtt.n, 1);

	/* A retransmission: the next segment may be one, too. */
	begin();
	send_hundreds(&at, 2);
	see(0, A, ACK, at - 100, 500, 100);
	send_hundreds(&at, 2);
	assert_int_equal(body.stats[A].rtt.n, 0);
	send_hundreds(&at, 1);
	assert_int_equal(body.stats[A].rtt.n, 1);

	/* Data that did not come here is acknowledged: it was sent before. */
	see(1 * S, A, ACK, at, 500, 100);
	see(10 * MS, B, ACK, 500, at + 1000, 0);
	at += 1000;
	send_hundreds(&at, 3);
	assert_int_equal(body.stats[A].rtt.n, 1);
	send_hundreds(&at, 1);
	assert_int_equal(body.stats[A].rtt.n, 2);
}

/* Every other hundred of the data is lost before it comes here. */
static void see_alternate(uint32_t n)
{
	for (uint32_t i = 0; i <= n; i++)
		see(1 * MS, A, ACK, 101 + 200 * i, 501, 100);
}

/* None of it was here before, and the gaps that are not listed are not called anything. */
TEST(more_gaps_than_are_listed_are_unknown)
{
	enum { GAPS = CONN_GAPS + 5 };

	shake_hands();
	see_alternate(GAPS);
	for (uint32_t i = 0; i < GAPS; i++)
		see(1 * MS, A, ACK, 201 + 200 * i, 501, 100);
	assert_int_equal(body.stats[A].retransmitted, 0);
	assert_int_equal(body.stats[A].out_of_order, CONN_GAPS);
	assert_int_equal(body.stats[A].late_unknown, GAPS - CONN_GAPS);
	/* What was acknowledged is known again. */
	see(1 * MS, B, ACK, 501, 301 + 200 * GAPS, 0);
	see(1 * MS, A, ACK, 101 + 200 * GAPS, 501, 100);
	assert_int_equal(body.stats[A].retransmitted, 1);
	assert_int_equal(body.stats[A].late_unknown, GAPS - CONN_GAPS);
}

TEST(timers_are_spread_over_a_round_trip)
{
	shake_hands();
	now += 1 * S;
	for (uint32_t i = 0; i < 100; i++)
		see(100 * US, A, ACK, 101 + 10 * i, 501, 10);
	assert_int_equal(head.sides[A].head - head.sides[B].tail, 4);
	for (uint32_t i = 0; i < 100; i++)
		see(100 * US, B, ACK, 501, 111 + 10 * i, 0);
	assert_int_equal(body.stats[A].rtt.n, 5);
	assert_ns(body.stats[A].rtt.last, 10 * MS);
}

/* ---- What was sent before ----------------------------------------------------------------------- */

/* A has sent up to @next, and all of it is acknowledged. */
static void send_all(uint32_t next)
{
	shake_hands();
	see(1 * MS, A, ACK, 101, 501, next - 101);
	see(10 * MS, B, ACK, 501, next, 0);
}

TEST(only_a_keep_alive_is_no_retransmission)
{
	static const struct {
		uint32_t seq, len;
		int flags;
		uint32_t retransmitted, new_bytes;
	} cases[] = {
		{ 200, 0, ACK, 0, 0 },	     { 200, 1, ACK, 0, 0 },
		{ 200, 2, ACK, 1, 1 },	     { 199, 1, ACK, 1, 0 },
		{ 200, 1, ACK | FIN, 1, 0 }, { 150, 1, ACK, 1, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		send_all(201);
		see(1 * S, A, cases[i].flags, cases[i].seq, 501, cases[i].len);
		assert_int_equal(body.stats[A].retransmitted,
				 cases[i].retransmitted);
		assert_int_equal(conn_data_bytes(&conn, A),
				 100 + cases[i].new_bytes);
	}
	/* Nothing is acknowledged, and the next number is 0. */
	begin();
	see(0, A, ACK, -100U, 501, 100);
	see(1 * S, A, ACK, -1U, 501, 1);
	assert_int_equal(body.stats[A].retransmitted, 1);
}

static void see_stamped(uint64_t after, uint32_t seq, uint32_t len, uint32_t tsval)
{
	struct segment segment;

	now += after;
	segment = make(ACK, seq, 501, len);
	segment.has_stamps = true;
	segment.tsval = tsval;
	show(A, &segment);
}

static void see_echo(uint64_t after, uint32_t ack, uint32_t tsecr)
{
	struct segment segment;

	now += after;
	segment = make(ACK, 501, ack, 0);
	segment.has_stamps = true;
	segment.tsecr = tsecr;
	show(B, &segment);
}

/* Data is sent three times; @tsval: the timestamp of the last one, which comes 10 ms before the answer. */
static void send_three_times(uint32_t tsval, uint32_t tsecr)
{
	shake_hands();
	see_stamped(1 * MS, 101, 100, 1000);
	see_stamped(200 * MS, 101, 100, 1200);
	see_stamped((uint64_t)(tsval - 1200) * MS, 101, 100, tsval);
	see_echo(10 * MS, 201, tsecr);
}

TEST(the_timestamp_tells_which_of_equal_segments_is_answered)
{
	send_three_times(1600, 1600);
	assert_int_equal(body.stats[A].rtt.n, 2); /* with the handshake's */
	assert_ns(body.stats[A].rtt.last, 10 * MS);
	send_three_times(1600, 1200);
	assert_int_equal(body.stats[A].rtt.n, 1);
	/* The first one may have come after the second. */
	send_three_times(1250, 1250);
	assert_int_equal(body.stats[A].rtt.n, 1);
}
