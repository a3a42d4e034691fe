/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Timers of a direction: a few of its segments, and when they came. An acknowledgment of a
 * segment or of more ends its timer, and of all that it ends the newest is the sample.
 *
 * Packets of the direction arm timers and drop them, and move `head`; those of the other one
 * end them, and move their `tail`. So no number is written by both. If `head` is moved
 * back at the same time as `tail` over it, `tail` is before `head`, and there is no timer.
 */
#ifndef NETOBS_BPF_RTT_TIMERS_H
#define NETOBS_BPF_RTT_TIMERS_H

#include "latency.h"
#include "segment.h"

enum { TIMER_INTERVAL_NS = 1000000 };

static __always_inline __u32 timer_slot(__u8 number)
{
	return number & (CONN_TIMERS - 1);
}

/* How many are armed; <= 0: none. */
static __always_inline int timers_armed(const struct conn_side *sender,
					const struct conn_side *acker)
{
	return (__s8)(sender->head - acker->tail);
}

/*
 * Whether it is time for another timer: a quarter of a round trip after the one before, so
 * that the timers are spread over it.
 */
static __always_inline bool timers_are_due(const struct conn_side *sender,
					   const struct conn_side *acker,
					   const struct conn_latency *rtt,
					   __u64 now)
{
	__u64 newest = sender->armed_ns[timer_slot(sender->head - 1)];
	__s64 since = now - newest;

	if (newest && since < TIMER_INTERVAL_NS)
		return false;
	if (timers_armed(sender, acker) >= CONN_TIMERS)
		return false;
	return !newest || since >= (__s64)rtt->smoothed
					   << (CONN_LATENCY_SHIFT - 2);
}

/* Time a segment that ends before @target. */
static __always_inline void timers_arm(struct conn_side *sender,
				       const struct conn_side *acker,
				       __u32 target, __u64 ns)
{
	__u8 head = sender->head, tail = acker->tail;

	if ((__s8)(head - tail) < 0)
		head = tail;
	sender->targets[timer_slot(head)] = target;
	sender->armed_ns[timer_slot(head)] = ns;
	sender->head = head + 1;
}

/*
 * Karn's rule: the segment at @seq was sent again. What acknowledges it, or anything
 * after it, may answer either; later segments are acknowledged late, with it.
 */
static __always_inline void timers_drop(struct conn_side *sender,
					const struct conn_side *acker, __u32 seq)
{
	__u8 tail = acker->tail, head = sender->head;

	for (int i = 0; i < CONN_TIMERS; i++) {
		if ((__s8)(head - tail) <= 0 ||
		    seq_diff(sender->targets[timer_slot(head - 1)], seq) <= 0)
			break;
		head--;
	}
	sender->head = head;
}

/* Returns when the newest segment came that @ack acknowledges, or 0. */
static __always_inline __u64 timers_end(struct conn_side *acker,
					const struct conn_side *sender, __u32 ack)
{
	__u8 tail = acker->tail, head = sender->head;
	__u64 newest = 0;

	for (int i = 0; i < CONN_TIMERS; i++) {
		if ((__s8)(head - tail) <= 0 ||
		    seq_diff(ack, sender->targets[timer_slot(tail)]) < 0)
			break;
		newest = sender->armed_ns[timer_slot(tail)];
		tail++;
	}
	acker->tail = tail;
	return newest;
}

#endif
