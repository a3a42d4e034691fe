// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Segments of one connection, one after the other, and the measurements from them. */
#include "lib_test.h"

#include "base/util.h"
#include "bpf/rtt/observe.h"
#include "bpf/store/conn_places.h"

#include <string.h>

static __u64 read_exact_clock(const struct segment *segment)
{
	return segment->now;
}

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, A = 0, B = 1 };

#define US 1000ULL
#define MS (1000 * US)
#define S (1000 * MS)

static struct conn_head head;
static struct conn_rates rates;
static struct conn_body body;
static const struct connection conn = { &head, &rates, &body };
static uint64_t now;

static void begin(void)
{
	memset(&head, 0, sizeof(head));
	memset(&rates, 0, sizeof(rates));
	memset(&body, 0, sizeof(body));
	head.talker = CONN_NEITHER;
	head.opener = CONN_NEITHER;
	now = 1000 * S;
}

static struct segment make(int flags, uint32_t seq, uint32_t ack, uint32_t len)
{
	return (struct segment){
		.seq = seq,
		.ack = ack,
		.len = len,
		.window = 1000,
		.flags = flags,
		.now = now,
		.tick = now >> CONN_TICK_SHIFT,
		.may_time = 1,
	};
}

static void show(int dir, struct segment *segment)
{
	enum verdict verdict = segment_judge(&conn, dir, segment);

	assert_int_not_equal(verdict, SEGMENT_ANOTHER);
	if (verdict == SEGMENT_REFUSED)
		refuse(&conn, dir, segment);
	else
		connection_observe(&conn, dir, segment);
}

/* @after: the segment before it. */
static void see(uint64_t after, int dir, int flags, uint32_t seq, uint32_t ack,
		uint32_t len)
{
	struct segment segment;

	now += after;
	segment = make(flags, seq, ack, len);
	show(dir, &segment);
}

static void see_window(int dir, uint32_t seq, uint32_t ack, uint16_t window)
{
	struct segment segment = make(ACK, seq, ack, 0);

	segment.window = window;
	show(dir, &segment);
}

static uint64_t ns_of(uint32_t latency)
{
	return (uint64_t)latency << CONN_LATENCY_SHIFT;
}

static void assert_ns(uint32_t latency, uint64_t ns)
{
	assert_in_range(ns_of(latency), ns - 63, ns);
}

/* A opens: 10 ms to B and back, 20 us to A. Numbers begin at 100 and 500. */
static void shake_hands(void)
{
	begin();
	see(0, A, SYN, 100, 0, 0);
	see(10 * MS, B, SYN | ACK, 500, 101, 0);
	see(20 * US, A, ACK, 101, 501, 0);
}

static void a_handshake_gives_a_sample_for_each_leg(void **state)
{
	(void)state;
	shake_hands();
	assert_int_equal(head.opener, A);
	assert_ns(body.stats[A].handshake, 10 * MS);
	assert_ns(body.stats[B].handshake, 20 * US);
	assert_int_equal(body.stats[A].rtt.n, 1);
	assert_int_equal(conn_class(&conn), CONN_OPEN);
}

static void a_syn_that_is_sent_again_gives_none(void **state)
{
	(void)state;
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

static void both_ends_may_open(void **state)
{
	(void)state;
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

static void an_answer_to_another_handshake_is_refused(void **state)
{
	(void)state;
	begin();
	see(0, A, SYN, 100, 0, 0);
	see(1 * MS, B, ACK, 900, 5000, 0); /* of an old connection */
	assert_int_equal(body.stats[A].rtt.n, 0);
	see(9 * MS, B, SYN | ACK, 500, 101, 0);
	assert_int_equal(body.stats[A].rtt.n, 1);
	assert_ns(body.stats[A].handshake, 10 * MS);
}

static void an_answer_with_another_number_is_no_sample(void **state)
{
	(void)state;
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

static void a_reset_closes_only_with_the_next_number(void **state)
{
	(void)state;
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

static void both_fins_close(void **state)
{
	(void)state;
	shake_hands();
	see(0, A, FIN | ACK, 101, 501, 10);
	assert_int_equal(conn_class(&conn), CONN_OPEN);
	see(0, B, FIN | ACK, 501, 112, 0);
	assert_int_equal(conn_class(&conn), CONN_CLOSED);
	assert_int_equal(conn_data_bytes(&conn, A), 10);
	assert_int_equal(conn_data_bytes(&conn, B), 0);
}

/* The first packet that is seen is behind the FIN. */
static void a_fin_that_is_sent_again_is_no_data(void **state)
{
	(void)state;
	begin();
	see(0, A, ACK, 1000, 501, 0);
	see(1 * MS, A, FIN | ACK, 999, 501, 0);
	assert_int_equal(conn_data_bytes(&conn, A), 0);
	see(1 * S, A, FIN | ACK, 999, 501, 0);
	assert_int_equal(conn_data_bytes(&conn, A), 0);
	assert_int_equal(rates.sides[A].peak_bytes, 0);
}

static void a_syn_with_another_number_is_another_connection(void **state)
{
	struct segment segment;

	(void)state;
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

/* RFC 5961, 4: an open end acknowledges neither SYN nor SYN+ACK of others. */
static void a_syn_ack_without_its_syn_changes_no_open_connection(void **state)
{
	struct segment forged, syn, answer;

	(void)state;
	shake_hands();
	for (int dir = A; dir <= B; dir++) {
		forged = make(SYN | ACK, 900, 102, 0);
		assert_true(is_another(&conn, dir, &forged));
		assert_true(is_stray(&conn, dir, &forged));
	}
	syn = make(SYN, 7000, 0, 0);
	assert_true(is_stray(&conn, A, &syn));
	refuse(&conn, A, &syn);
	assert_true(is_stray(&conn, B, &forged));
	answer = make(SYN | ACK, 900, 7001, 0);
	assert_true(is_stray(&conn, A, &answer));
	assert_true(is_another(&conn, B, &answer));
	assert_false(is_stray(&conn, B, &answer));
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
static void a_syn_in_one_direction_begins_with_what_follows(void **state)
{
	const uint32_t far = 1U << 30;

	(void)state;
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
static void a_connection_goes_on_after_what_was_missed(void **state)
{
	const uint32_t far = 1U << 30;

	(void)state;
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

/* The effects that a flood with forged addresses can have, and those that it cannot. */
static void more_than_a_handshake_is_no_longer_half_open(void **state)
{
	(void)state;
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

static void a_keepalive_is_not_data(void **state)
{
	(void)state;
	shake_hands();
	for (uint32_t len = 0; len < 2; len++) {
		see(10 * S, A, ACK, 100, 501, len);
		see(10 * MS, B, ACK, 501, 101, 0);
	}
	assert_int_equal(body.stats[A].retransmitted, 0);
	assert_int_equal(body.stats[A].rtt.n, 1);
	assert_int_equal(body.stats[B].duplicate_acks, 0);
	/* One byte that is not acknowledged is data. */
	see(1 * S, A, ACK, 101, 501, 1);
	see(1 * S, A, ACK, 101, 501, 1);
	see(10 * MS, B, ACK, 501, 102, 0);
	assert_int_equal(body.stats[A].retransmitted, 1);
	assert_int_equal(body.stats[A].retransmitted_bytes, 1);
	assert_int_equal(body.stats[A].rtt.n, 1);
}

static void a_probe_of_a_closed_window_gives_no_sample(void **state)
{
	(void)state;
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

static void what_is_after_a_retransmission_gives_no_sample(void **state)
{
	(void)state;
	shake_hands();
	see(1 * S, A, ACK, 101, 501, 100);
	see(5 * MS, A, ACK, 201, 501, 100);
	for (int i = 0; i < 3; i++)
		see(1 * MS, B, ACK, 501, 101, 0);
	see(1 * MS, A, ACK, 101, 501, 100);
	see(10 * MS, B, ACK, 501, 301, 0);
	assert_int_equal(body.stats[A].rtt.n, 1);
	assert_int_equal(body.stats[A].retransmitted, 1);
	assert_int_equal(body.stats[A].retransmitted_bytes, 100);
	assert_int_equal(body.stats[B].duplicate_acks, 3);
}

/* Its acknowledgment was lost, and so was what followed it; the kernel takes no sample, either. */
static void what_is_before_a_retransmission_gives_no_sample(void **state)
{
	(void)state;
	shake_hands();
	see(1 * MS, A, ACK | PSH, 101, 501, 100);
	see(1 * MS, A, ACK | PSH, 201, 501, 100);
	see(200 * MS, A, ACK | PSH, 201, 501, 100);
	see(10 * MS, B, ACK, 501, 301, 0);
	assert_int_equal(body.stats[A].rtt.n, 1); /* of the handshake */
	assert_int_equal(body.stats[A].retransmitted, 1);
	see(1 * MS, A, ACK | PSH, 301, 501, 100);
	see(10 * MS, B, ACK, 501, 401, 0);
	assert_int_equal(body.stats[A].rtt.n, 2);
	assert_ns(body.stats[A].rtt.last, 10 * MS);
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

static void a_connection_that_was_open_is_timed_after_two_round_trips(void **state)
{
	uint32_t at = 1000;

	(void)state;
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

static void what_was_lost_before_is_out_of_order(void **state)
{
	(void)state;
	shake_hands();
	see(1 * S, A, ACK, 101, 501, 100);
	see(1 * MS, A, ACK, 301, 501, 100);
	see(1 * MS, A, ACK, 201, 501, 100);
	assert_int_equal(body.stats[A].retransmitted, 0);
	assert_int_equal(body.stats[A].out_of_order, 1);
	see(1 * MS, A, ACK, 201, 501, 100);
	assert_int_equal(body.stats[A].retransmitted, 1);
}

/* Every other hundred of the data is lost before it comes here. */
static void see_alternate(uint32_t n)
{
	for (uint32_t i = 0; i <= n; i++)
		see(1 * MS, A, ACK, 101 + 200 * i, 501, 100);
}

/* None of it was here before, and the gaps that are not listed are not called anything. */
static void more_gaps_than_are_listed_are_unknown(void **state)
{
	enum { GAPS = CONN_GAPS + 5 };

	(void)state;
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

static void an_acknowledgment_may_be_inside_a_buffer(void **state)
{
	(void)state;
	shake_hands();
	see(1 * S, A, ACK, 101, 501, 65000);
	see(10 * MS, B, ACK, 501, 30101, 0);
	assert_int_equal(body.stats[A].rtt.n, 1);
	see(2 * MS, B, ACK, 501, 65101, 0);
	assert_int_equal(body.stats[A].rtt.n, 2);
	assert_ns(body.stats[A].rtt.last, 12 * MS);
}

/* Of five segments of @len / 5 bytes, which go on one after the other. */
static void see_buffer(uint64_t after, int dir, uint32_t seq, uint32_t ack,
		       uint32_t len)
{
	struct segment segment;

	now += after;
	segment = make(ACK, seq, ack, len);
	segment.mss = len / 5;
	show(dir, &segment);
}

static void the_first_segment_of_a_buffer_is_timed(void **state)
{
	(void)state;
	shake_hands();
	see_buffer(1 * S, A, 101, 501, 5000);
	see(10 * MS, B, ACK, 501, 1100, 0);
	assert_int_equal(body.stats[A].rtt.n, 1);
	see(1 * MS, B, ACK, 501, 2101, 0);
	assert_int_equal(body.stats[A].rtt.n, 2);
	assert_ns(body.stats[A].rtt.last, 11 * MS);
	see(40 * MS, B, ACK, 501, 5101, 0);
	assert_int_equal(body.stats[A].rtt.n, 2);
	/* Others of it are sent again, after its acknowledgment. */
	see_buffer(1 * S, A, 5101, 501, 5000);
	see(10 * MS, B, ACK, 501, 6101, 0);
	see(1 * MS, A, ACK, 6101, 501, 1000);
	see(10 * MS, B, ACK, 501, 10101, 0);
	assert_int_equal(body.stats[A].rtt.n, 3);
	assert_ns(body.stats[A].rtt.last, 10 * MS);
	see_buffer(1 * S, A, 10101, 501, 5000);
	see(1 * MS, A, ACK, 10101, 501, 1000);
	see(9 * MS, B, ACK, 501, 11101, 0);
	assert_int_equal(body.stats[A].rtt.n, 3);
}

static void timers_are_spread_over_a_round_trip(void **state)
{
	(void)state;
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

static void ask(uint32_t *at, uint32_t answered)
{
	see(100 * MS, A, ACK, *at, answered, 50);
	see(0, A, ACK | PSH, *at + 50, answered, 50);
	*at += 100;
}

static void an_answer_is_timed_from_the_last_byte_of_the_question(void **state)
{
	uint32_t asked = 101, answered = 501;

	(void)state;
	shake_hands();
	for (int i = 0; i < 10; i++) {
		ask(&asked, answered);
		see(10 * MS, B, ACK, answered, asked, 0);
		see(40 * MS, B, ACK, answered, asked, 1000);
		see(1 * MS, B, ACK | PSH, answered + 1000, asked, 1000);
		answered += 2000;
		see(1 * MS, A, ACK, asked, answered, 0);
	}
	assert_int_equal(body.stats[B].turn.n, 10);
	assert_ns(body.stats[B].turn.smoothed, 50 * MS);
	assert_int_equal(body.stats[B].overlaps, 0);
	assert_int_equal(body.stats[A].turn.n, 9);
	assert_ns(body.stats[A].turn.last, 101 * MS);
	assert_ns(conn_min(&body.stats[A].rtt), 10 * MS);
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

static void the_way_to_the_server_is_no_time_of_the_application(void **state)
{
	(void)state;
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

static void streams_and_pipelines_have_no_turns(void **state)
{
	uint32_t a = 101, b = 501;

	(void)state;
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

static void a_question_that_is_repeated_has_no_timed_answer(void **state)
{
	uint32_t asked = 101;

	(void)state;
	shake_hands();
	ask(&asked, 501);
	see(300 * MS, A, ACK | PSH, 151, 501, 50);
	see(10 * MS, B, ACK | PSH, 501, asked, 10);
	assert_int_equal(body.stats[B].turn.n, 0);
}

static void the_peak_rate_is_that_of_the_busiest_window(void **state)
{
	uint32_t at = 101;

	(void)state;
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

static void the_minimum_forgets_and_the_histogram_does_not(void **state)
{
	struct conn_latency latency = { 0 };
	uint32_t tick = 77;

	(void)state;
	latency_add(&latency, latency_of(1 * MS), tick);
	assert_ns(conn_min(&latency), 1 * MS);
	latency_add(&latency, latency_of(5 * MS), tick + CONN_MIN_WINDOW);
	assert_ns(conn_min(&latency), 1 * MS);
	latency_add(&latency, latency_of(7 * MS), tick + 2 * CONN_MIN_WINDOW);
	assert_ns(conn_min(&latency), 5 * MS);
	latency_add(&latency, latency_of(9 * MS), tick + 9 * CONN_MIN_WINDOW);
	assert_ns(conn_min(&latency), 9 * MS);
	assert_ns(latency.max, 9 * MS);
	assert_int_equal(latency.n, 4);
	for (int i = 0; i < CONN_HIST; i++) {
		uint64_t ns = 1ULL << (CONN_HIST_SHIFT + i);

		assert_int_equal(latency_bucket(latency_of(ns - 64)), i);
		assert_int_equal(latency_bucket(latency_of(ns)),
				 i < CONN_HIST - 1 ? i + 1 : i);
	}
	assert_int_equal(latency_bucket(CONN_LATENCY_MAX), CONN_HIST - 1);
	assert_int_equal(latency_of(~0ULL), CONN_LATENCY_MAX);
}

enum { IDLE = 60 };

static uint32_t choose(const struct conn_bucket *bucket, uint64_t at, bool has_syn)
{
	struct conn_choice choice;

	conn_choose(bucket, 3, at, has_syn, IDLE, &choice);
	return choice.way;
}

static void a_place_that_is_free_is_taken_first(void **state)
{
	struct conn_bucket bucket = { 0 };

	(void)state;
	assert_int_equal(choose(&bucket, 0, true), 3);
	for (uint32_t way = 0; way < CONN_WAYS; way++)
		bucket.tags[way] = 1;
	bucket.tags[6] = 0;
	assert_int_equal(choose(&bucket, 0, true), 6);
}

/*
 * What can be in a bucket. The one with the higher rank gives its place first; a crowd is of two
 * that are half-open or unanswered. 0: it gives it to none.
 */
struct occupant {
	enum conn_class class;
	uint32_t since;
	int rank, crowd_rank;
	bool is_taken_by_syn;
};

static const struct occupant occupants[] = {
	{ CONN_HALF_OPEN, 900, 99, 99, true },
	{ CONN_HALF_OPEN, 2, 98, 98, true },
	{ CONN_CLOSED, 900, 97, 97, true },
	{ CONN_CLOSED, IDLE, 96, 96, true },
	{ CONN_HALF_OPEN, 1, 85, 95, true },
	{ CONN_HALF_OPEN, 0, 84, 94, true },
	{ CONN_CLOSED, IDLE - 1, 93, 93, true },
	{ CONN_CLOSED, 0, 92, 92, true },
	{ CONN_UNANSWERED, 900, 75, 83, true },
	{ CONN_UNANSWERED, IDLE, 74, 82, true },
	{ CONN_UNANSWERED, IDLE - 1, 73, 81, false },
	{ CONN_UNANSWERED, 0, 72, 80, false },
	{ CONN_OPEN, 16000, 79, 79, false },
	{ CONN_OPEN, IDLE, 78, 78, false },
};

static bool is_about_to_open(const struct occupant *one)
{
	return one->class == CONN_HALF_OPEN || one->class == CONN_UNANSWERED;
}

static uint16_t age_of(const struct occupant *one, uint64_t at)
{
	return conn_age(one->class,
			at - ((uint64_t)one->since << CONN_AGE_SHIFT));
}

/* Which of both gives its place; NULL: none. */
static const struct occupant *expect(const struct occupant *a,
				     const struct occupant *b, bool has_syn)
{
	const bool is_crowd = is_about_to_open(a) && is_about_to_open(b);
	const int rank_a = is_crowd ? a->crowd_rank : a->rank;
	const int rank_b = is_crowd ? b->crowd_rank : b->rank;

	if (has_syn && !a->is_taken_by_syn)
		return b->is_taken_by_syn ? b : NULL;
	if (has_syn && !b->is_taken_by_syn)
		return a;
	return rank_a > rank_b ? a : b;
}

/* Each two of them beside open ones, which give their place to no other. */
static void places_are_taken_from_half_open_and_ended_then_idle_ones(void **state)
{
	const uint64_t second = 1ULL << CONN_AGE_SHIFT, at = 20000 * second;
	const size_t n = ARRAY_SIZE(occupants);

	(void)state;
	for (size_t i = 0; i < n * n; i++) {
		const struct occupant *a = &occupants[i / n];
		const struct occupant *b = &occupants[i % n];
		struct conn_bucket bucket;

		if (a == b)
			continue;
		for (uint32_t way = 0; way < CONN_WAYS; way++) {
			bucket.tags[way] = 1;
			bucket.ages[way] = conn_age(CONN_OPEN, at - way * second);
		}
		bucket.ages[5] = age_of(a, at);
		bucket.ages[7] = age_of(b, at);
		for (int has_syn = 0; has_syn < 2; has_syn++) {
			const struct occupant *gone = expect(a, b, has_syn);

			assert_int_equal(choose(&bucket, at, has_syn),
					 !gone	   ? CONN_WAYS :
					 gone == a ? 5 :
						     7);
		}
	}
}

/* Each CPU has its own. */
static void a_clock_that_is_behind_makes_nothing_idle(void **state)
{
	const uint64_t second = 1ULL << CONN_AGE_SHIFT, at = 20000 * second;
	struct conn_bucket bucket;

	(void)state;
	for (uint32_t way = 0; way < CONN_WAYS; way++) {
		bucket.tags[way] = 1;
		bucket.ages[way] = conn_age(CONN_OPEN, at + second);
	}
	assert_int_equal(choose(&bucket, at, false), CONN_WAYS);
}

static void both_directions_have_one_key(void **state)
{
	struct flow_key key = { .ifindex = 3,
				.src_port = 40000,
				.dst_port = 443,
				.vni = 5,
				.tunnel = 1,
				.outer_hash = 77,
				.flags = KEY_EGRESS };
	struct conn_key there, answer;
	struct flow_key back;

	(void)state;
	key.src.lanes[1] = 11;
	key.dst.lanes[1] = 22;
	back = key;
	back.src = key.dst;
	back.dst = key.src;
	back.src_port = 443;
	back.dst_port = 40000;
	back.outer_hash = 78;
	back.flags = KEY_AGAIN;
	/* Each direction may be sampled at a rate of its own. */
	((uint64_t *)&back)[5] |= key_rate_bits(RATES - 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(connection_dir(&key), !connection_dir(&back));
		there = conn_key_of(&key, connection_dir(&key));
		answer = conn_key_of(&back, connection_dir(&back));
		conn_set_key(&body, &there);
		assert_true(is_connection(&body, &answer));
		body.key.dst_port++;
		assert_false(is_connection(&body, &answer));
		key.src_port = key.dst_port = back.src_port = back.dst_port = 1;
		if (i == 1)
			key.src.lanes[0] = back.dst.lanes[0] = ~0ULL;
	}
	key.dst = key.src;
	assert_int_equal(connection_dir(&key), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handshake_gives_a_sample_for_each_leg),
		cmocka_unit_test(a_syn_that_is_sent_again_gives_none),
		cmocka_unit_test(both_ends_may_open),
		cmocka_unit_test(an_answer_to_another_handshake_is_refused),
		cmocka_unit_test(an_answer_with_another_number_is_no_sample),
		cmocka_unit_test(a_reset_closes_only_with_the_next_number),
		cmocka_unit_test(both_fins_close),
		cmocka_unit_test(a_fin_that_is_sent_again_is_no_data),
		cmocka_unit_test(a_syn_with_another_number_is_another_connection),
		cmocka_unit_test(
			a_syn_ack_without_its_syn_changes_no_open_connection),
		cmocka_unit_test(a_syn_in_one_direction_begins_with_what_follows),
		cmocka_unit_test(a_connection_goes_on_after_what_was_missed),
		cmocka_unit_test(more_than_a_handshake_is_no_longer_half_open),
		cmocka_unit_test(a_keepalive_is_not_data),
		cmocka_unit_test(a_probe_of_a_closed_window_gives_no_sample),
		cmocka_unit_test(what_is_after_a_retransmission_gives_no_sample),
		cmocka_unit_test(what_is_before_a_retransmission_gives_no_sample),
		cmocka_unit_test(
			a_connection_that_was_open_is_timed_after_two_round_trips),
		cmocka_unit_test(what_was_lost_before_is_out_of_order),
		cmocka_unit_test(more_gaps_than_are_listed_are_unknown),
		cmocka_unit_test(an_acknowledgment_may_be_inside_a_buffer),
		cmocka_unit_test(the_first_segment_of_a_buffer_is_timed),
		cmocka_unit_test(timers_are_spread_over_a_round_trip),
		cmocka_unit_test(
			an_answer_is_timed_from_the_last_byte_of_the_question),
		cmocka_unit_test(
			the_way_to_the_server_is_no_time_of_the_application),
		cmocka_unit_test(streams_and_pipelines_have_no_turns),
		cmocka_unit_test(a_question_that_is_repeated_has_no_timed_answer),
		cmocka_unit_test(the_peak_rate_is_that_of_the_busiest_window),
		cmocka_unit_test(the_minimum_forgets_and_the_histogram_does_not),
		cmocka_unit_test(a_place_that_is_free_is_taken_first),
		cmocka_unit_test(
			places_are_taken_from_half_open_and_ended_then_idle_ones),
		cmocka_unit_test(a_clock_that_is_behind_makes_nothing_idle),
		cmocka_unit_test(both_directions_have_one_key),
	};

	return cmocka_run_group_tests_name("rtt_observe", tests, NULL, NULL);
}
