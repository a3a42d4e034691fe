/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* One connection, which is shown segments one after the other. */
#ifndef TESTS_RTT_SEGMENTS_H
#define TESTS_RTT_SEGMENTS_H

#include "lib_test.h"

#include "bpf/rtt/observe.h"

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

static inline void begin(void)
{
	memset(&head, 0, sizeof(head));
	memset(&rates, 0, sizeof(rates));
	memset(&body, 0, sizeof(body));
	head.talker = CONN_NEITHER;
	head.opener = CONN_NEITHER;
	now = 1000 * S;
}

static inline struct segment make(int flags, uint32_t seq, uint32_t ack,
				  uint32_t len)
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

static inline void show(int dir, struct segment *segment)
{
	enum verdict verdict = segment_judge(&conn, dir, segment);

	assert_int_not_equal(verdict, SEGMENT_ANOTHER);
	if (verdict == SEGMENT_REFUSED)
		refuse(&conn, dir, segment);
	else
		connection_observe(&conn, dir, segment);
}

/* @after: the segment before it. */
static inline void see(uint64_t after, int dir, int flags, uint32_t seq,
		       uint32_t ack, uint32_t len)
{
	struct segment segment;

	now += after;
	segment = make(flags, seq, ack, len);
	show(dir, &segment);
}

static inline uint64_t ns_of(uint32_t latency)
{
	return (uint64_t)latency << CONN_LATENCY_SHIFT;
}

static inline void assert_ns(uint32_t latency, uint64_t ns)
{
	assert_in_range(ns_of(latency), ns - 63, ns);
}

/* A opens: 10 ms to B and back, 20 us to A. Numbers begin at 100 and 500. */
static inline void shake_hands(void)
{
	begin();
	see(0, A, SYN, 100, 0, 0);
	see(10 * MS, B, SYN | ACK, 500, 101, 0);
	see(20 * US, A, ACK, 101, 501, 0);
}

#endif
