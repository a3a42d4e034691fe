// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Segments that their ends would refuse change nothing, and a connection goes on after them. */
#include "segments.h"

TEST(a_reset_closes_only_with_the_next_number)
{
	shake_hands();
	see(0, B, RST, 7000, 0, 0);
	assert_int_equal(conn_class(&conn), CONN_OPEN);
	see(0, B, RST, 501, 0, 0);
	assert_int_equal(conn_class(&conn), CONN_CLOSED);

	begin();
	see(0, A, SYN, 100, 0, 0);
	see(1 * MS, B, RST | ACK, 0, 101, 0);
	assert_int_equal(conn_class(&conn), CONN_CLOSED);
	assert_int_equal(body.stats[A].rtt.n, 0);
}

TEST(a_syn_with_another_number_is_another_connection)
{
	struct segment segment;

	shake_hands();
	segment = make(SYN, 100, 0, 0);
	assert_false(is_another(&conn, A, &segment));
	segment = make(SYN, 101, 0, 0);
	assert_true(is_another(&conn, A, &segment));
	assert_true(is_stray(&conn, A, &segment)); /* it is open */
	see(0, A, FIN | ACK, 101, 501, 0);
	see(0, B, FIN | ACK, 501, 102, 0);
	assert_true(is_another(&conn, A, &segment));
	assert_false(is_stray(&conn, A, &segment));
	begin();
	see(0, A, ACK, 5000, 1, 0); /* found open */
	segment = make(SYN, 4999, 0, 0);
	assert_false(is_another(&conn, A, &segment));
	segment = make(SYN, 5001, 0, 0);
	assert_true(is_another(&conn, A, &segment));
	assert_true(is_stray(&conn, A, &segment)); /* until it comes again */
}

static enum verdict judge(int dir, int flags, uint32_t seq, uint32_t ack)
{
	const struct segment segment = make(flags, seq, ack, 0);
	enum verdict verdict = segment_judge(&conn, dir, &segment);

	if (verdict == SEGMENT_REFUSED)
		refuse(&conn, dir, &segment);
	return verdict;
}

/* Its answers take another way: only what follows tells a SYN from a forged one. */
TEST(a_syn_in_one_direction_begins_with_what_follows)
{
	const uint32_t far = 1U << 30;

	begin();
	see(0, A, SYN, 100, 0, 0);
	see(10 * MS, A, ACK, 101, 501, 50);
	assert_int_equal(conn_class(&conn), CONN_UNANSWERED);
	assert_int_equal(judge(A, SYN, far, 0), SEGMENT_REFUSED);
	see(10 * MS, A, ACK, 151, 501, 50); /* it goes on */
	assert_int_equal(conn_data_bytes(&conn, A), 100);
	assert_int_equal(judge(A, ACK, far + 7, 701), SEGMENT_REFUSED);
	assert_int_equal(judge(A, SYN, far, 0), SEGMENT_REFUSED);
	assert_int_equal(judge(A, SYN, far, 0), SEGMENT_ANOTHER);
	assert_int_equal(judge(A, ACK, far + 1, 701), SEGMENT_ANOTHER);
	assert_int_equal(judge(A, RST, far + 1, 0), SEGMENT_REFUSED);
	assert_int_equal(judge(B, SYN | ACK, 300, far + 1), SEGMENT_ANOTHER);
}

/* Numbers that the ends refuse, until there are more of them than a guess would have. */
TEST(a_connection_goes_on_after_what_was_missed)
{
	const uint32_t far = 1U << 30;

	shake_hands();
	see(1 * S, A, ACK, 101, 501, 100);
	see(10 * MS, B, ACK, 501, 201, 0);
	for (uint32_t i = 0; i <= REFUSED_RUN; i++) {
		assert_int_equal(head.sides[A].next, 201);
		see(1 * MS, A, ACK, far + 100 * i, 501, 100);
	}
	assert_int_equal(head.sides[A].next, far + 100 * REFUSED_RUN);
	assert_int_equal(conn_data_bytes(&conn, A), 100);
	assert_int_equal(body.stats[A].retransmitted, 0);
	see(1 * MS, A, ACK, far + 100 * REFUSED_RUN, 501, 100);
	see(1 * MS, A, ACK, far, 501, 100); /* it may have been here */
	assert_int_equal(conn_data_bytes(&conn, A), 200);
	assert_int_equal(body.stats[A].retransmitted, 0);
	assert_int_equal(body.stats[A].late_unknown, 1);
	assert_int_equal(body.stats[A].rtt.n, 2);
}
