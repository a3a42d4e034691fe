// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* How a connection opens and closes, and how fast it was. */
#include "segments.h"

TEST(a_handshake_gives_a_sample_for_each_leg)
{
	shake_hands();
	assert_int_equal(head.opener, A);
	assert_ns(body.stats[A].handshake, 10 * MS);
	assert_ns(body.stats[B].handshake, 20 * US);
	assert_int_equal(body.stats[A].rtt.n, 1);
	assert_int_equal(conn_class(&conn), CONN_OPEN);
}

TEST(a_syn_that_is_sent_again_gives_none)
{
	begin();
	see(0, A, SYN, 100, 0, 0);
	see(1 * S, A, SYN, 100, 0, 0);
	see(10 * MS, B, SYN | ACK, 500, 101, 0);
	see(1 * S, B, SYN | ACK, 500, 101, 0);
	see(10 * MS, A, ACK, 101, 501, 0);
	assert_int_equal(body.stats[A].syn_retries, 1);
	assert_int_equal(body.stats[B].syn_retries, 1);
	assert_int_equal(body.stats[A].rtt.n + body.stats[B].rtt.n, 0);
	assert_int_equal(body.stats[A].handshake | body.stats[B].handshake, 0);
	assert_int_equal(body.stats[A].retransmitted, 0);
}

TEST(both_ends_may_open)
{
	begin();
	see(0, A, SYN, 100, 0, 0);
	see(1 * MS, B, SYN, 500, 0, 0);
	see(10 * MS, A, SYN | ACK, 100, 501, 0);
	see(1 * MS, B, SYN | ACK, 500, 101, 0);
	assert_int_equal(body.stats[A].syn_retries, 0);
	assert_int_equal(body.stats[B].syn_retries, 0);
	assert_ns(body.stats[B].handshake, 10 * MS);
	assert_int_equal(body.stats[A].rtt.n, 0);
	assert_int_equal(conn_class(&conn), CONN_OPEN);
}

TEST(an_answer_with_another_number_is_no_sample)
{
	begin();
	see(0, A, SYN, 100, 0, 0);
	see(1 * MS, B, SYN | ACK, 900, 5000, 0); /* of an old connection */
	assert_int_equal(body.stats[A].rtt.n, 0);
	assert_int_equal(body.stats[A].handshake, 0);

	begin();
	see(0, A, SYN, 100, 0, 0);
	see(1 * MS, B, ACK, 900, 101, 0); /* it has no SYN */
	assert_int_equal(body.stats[A].rtt.n, 0);

	begin();
	see(0, A, SYN, 100, 0, 0);
	see(10 * MS, B, SYN | ACK, 500, 101, 0);
	see(1 * MS, B, ACK, 501, 101, 50);
	see(20 * US, A, ACK, 101, 551, 0); /* the one before it did not come here */
	assert_int_equal(body.stats[B].rtt.n, 0);
	assert_int_equal(body.stats[B].handshake, 0);
}

/* The effects that a flood with forged addresses can have, and those that it cannot. */
TEST(more_than_a_handshake_is_no_longer_half_open)
{
	begin();
	see(0, A, SYN, 100, 0, 0);
	assert_int_equal(conn_class(&conn), CONN_HALF_OPEN);
	see(1 * S, A, SYN, 100, 0, 0);
	assert_int_equal(conn_class(&conn), CONN_HALF_OPEN);
	see(10 * MS, B, SYN | ACK, 500, 101, 0);
	assert_int_equal(conn_class(&conn), CONN_HALF_OPEN);
	see(10 * MS, A, ACK, 101, 501, 0);
	assert_int_equal(conn_class(&conn), CONN_OPEN);

	begin(); /* the SYN found no place */
	see(0, B, SYN | ACK, 500, 101, 0);
	assert_int_equal(conn_class(&conn), CONN_HALF_OPEN);
	see(10 * MS, A, ACK, 101, 501, 0);
	assert_int_equal(conn_class(&conn), CONN_OPEN);

	begin(); /* nor did the SYN+ACK */
	see(0, A, ACK, 101, 501, 0);
	assert_int_equal(conn_class(&conn), CONN_UNANSWERED);
	see(10 * MS, B, ACK, 501, 111, 0);
	assert_int_equal(conn_class(&conn), CONN_OPEN);

	begin(); /* the other direction takes another way */
	see(0, A, SYN, 100, 0, 0);
	see(10 * MS, A, ACK, 101, 501, 0);
	assert_int_equal(conn_class(&conn), CONN_UNANSWERED);
}

TEST(both_fins_close)
{
	shake_hands();
	see(0, A, FIN | ACK, 101, 501, 10);
	assert_int_equal(conn_class(&conn), CONN_OPEN);
	see(0, B, FIN | ACK, 501, 112, 0);
	assert_int_equal(conn_class(&conn), CONN_CLOSED);
	assert_int_equal(conn_data_bytes(&conn, A), 10);
	assert_int_equal(conn_data_bytes(&conn, B), 0);
}

/* The first packet that is seen is behind the FIN. */
TEST(a_fin_that_is_sent_again_is_no_data)
{
	begin();
	see(0, A, ACK, 1000, 501, 0);
	see(1 * MS, A, FIN | ACK, 999, 501, 0);
	assert_int_equal(conn_data_bytes(&conn, A), 0);
	see(1 * S, A, FIN | ACK, 999, 501, 0);
	assert_int_equal(conn_data_bytes(&conn, A), 0);
	assert_int_equal(rates.sides[A].peak_bytes, 0);
}

TEST(the_peak_rate_is_that_of_the_busiest_window)
{
	uint32_t at = 101;

	shake_hands();
	for (int window = 0; window < 10; window++) {
		for (int i = 0; i < 4; i++) {
			uint32_t len = window == 5 ? 9000 : 100;

			see(30 * MS, A, ACK, at, 501, len);
			at += len;
		}
	}
	see(1 * S, A, ACK, at, 501, 1);
	assert_int_equal(conn_data_bytes(&conn, A), at + 1 - 101);
	assert_in_range(rates.sides[A].peak_bytes, 2 * 9000, 4 * 9000 + 200);
}
