/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Timers of a direction: a few of its segments, and when they came. An acknowledgment ends the
 * timers of all segments that it covers; the newest of these gives the sample.
 *
 * Packets of the direction arm and drop timers, and move `head`; packets of the other direction
 * end timers, and move `tail`. So each index has one writer. If one CPU moves `head` back while
 * another moves `tail` past it, `tail` is ahead of `head`, which means that no timer is armed.
 *
 * Timers are in the body of an entry. `due` and `awaited` in its head show nearly all packets that
 * they need not touch the body: `due` is when the next timer may be armed, and `awaited` the
 * acknowledgment that ends the oldest timer, as packets of the other direction last saw it. It is
 * never too high, and may be too low after timers were dropped and armed again.
 */
#ifndef NETOBS_BPF_RTT_TIMERS_H
#define NETOBS_BPF_RTT_TIMERS_H

#include "latency.h"
#include "segment.h"

enum {
	TIMER_INTERVAL = 16, /* between two timers at least: 1.05 ms */
	TIMER_INTERVAL_MAX = /* a quarter of CONN_LATENCY_MAX */
	1 << (32 + CONN_LATENCY_SHIFT - 2 - CONN_DUE_SHIFT),
};

static __always_inline __u32 timer_slot(__u8 number)
{
	return number & (CONN_TIMERS - 1);
}

/* @return the number of armed timers; <= 0: none */
static __always_inline int timers_armed(const struct conn_side *sender,
					const struct conn_side *acker)
{
	return (__s8)(sender->head - acker->tail);
}

/*
 * @return whether it is time for another timer: a quarter of a round trip after the one
 * before, so that the timers are spread over it
 */
static __always_inline bool timers_are_due(const struct conn_side *sender,
					   const struct conn_side *acker,
					   __u64 now)
{
	__u32 left = sender->due - (__u32)(now >> CONN_DUE_SHIFT);

	/* `due` wraps: a time long past looks like one in the future. */
	if (left && left <= TIMER_INTERVAL_MAX)
		return false;
	return timers_armed(sender, acker) < CONN_TIMERS;
}

static __always_inline __u32 timers_next(const struct conn_latency *rtt, __u64 now)
{
	__u32 quarter = rtt->smoothed >>
			(CONN_DUE_SHIFT + 2 - CONN_LATENCY_SHIFT);

	return (now >> CONN_DUE_SHIFT) +
	       (quarter > TIMER_INTERVAL ? quarter : TIMER_INTERVAL);
}

/* Time a segment of @dir that ends before @target. @return the timer */
static __always_inline __u32 timers_arm(const struct connection *conn, int dir,
					__u32 target, __u64 ns)
{
	struct conn_timers *timers = &conn->body->timers[dir];
	struct conn_side *sender = &conn->head->sides[dir];
	__u8 head = sender->head, tail = conn->head->sides[!dir].tail;

	if ((__s8)(head - tail) < 0)
		head = tail;
	timers->targets[timer_slot(head)] = target;
	timers->armed_ns[timer_slot(head)] = ns;
	sender->head = head + 1;
	sender->due = timers_next(&conn->body->stats[dir].rtt, ns);
	return timer_slot(head);
}

/*
 * Karn's rule: data of @dir was retransmitted. An acknowledgment of that data, or of data after it,
 * may answer the original or the retransmission. Later segments are acknowledged late, together
 * with it, and so are earlier segments if their own acknowledgment was lost.
 */
static __always_inline void timers_drop(const struct connection *conn, int dir)
{
	struct conn_side *sender = &conn->head->sides[dir];
	__u8 tail = conn->head->sides[!dir].tail;

	if ((__s8)(sender->head - tail) > 0)
		sender->head = tail;
}

/* End timers up to @ack of direction @dir. @return when the newest of their segments came, or 0 */
static __always_inline __u64 timers_end(const struct connection *conn, int dir,
					__u32 ack)
{
	const struct conn_timers *timers = &conn->body->timers[!dir];
	struct conn_side *acker = &conn->head->sides[dir];
	__u8 tail = acker->tail, head = conn->head->sides[!dir].head;
	__u64 newest = 0;

	acker->awaited = ack;
	for (int i = 0; i < CONN_TIMERS; i++) {
		if ((__s8)(head - tail) <= 0)
			break;
		if (seq_diff(ack, timers->targets[timer_slot(tail)]) < 0) {
			acker->awaited = timers->targets[timer_slot(tail)];
			break;
		}
		newest = timers->armed_ns[timer_slot(tail)];
		tail++;
	}
	acker->tail = tail;
	return newest;
}

/* While no timer is armed, `awaited` must stay near the acknowledged number: both wrap. */
static __always_inline void timers_follow(struct conn_head *head, int dir)
{
	struct conn_side *acker = &head->sides[dir];

	if (timers_armed(&head->sides[!dir], acker) <= 0)
		acker->awaited = acker->acked;
}

#endif
