/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Nearly all segments belong to an open connection, come in order, and neither begin nor end a
 * timer. They change the head of its entry alone, and its rate once a window of that is over.
 * usual_observe() does the same as connection_observe() would, in half of the time. Pure: the
 * same header builds for the host.
 */
#ifndef NETOBS_BPF_RTT_USUAL_H
#define NETOBS_BPF_RTT_USUAL_H

#include "acks.h"
#include "rate.h"

enum {
	USUAL_FLAGS = TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK,
	USUAL_STATE = CONN_SEEN | CONN_ACKED,
	USUAL_STATE_NOT = CONN_REPEATS | CONN_RESENT | CONN_STAMPS_SEEN |
			  CONN_STAMPED,
	USUAL_OTHER_NOT = CONN_REPEATS | CONN_STAMPED,
};

/* An open connection, no SYN or end, and no timestamps to follow: see stamps_matter(). */
static __always_inline bool is_usual_state(const struct conn_head *head, int dir,
					   const struct segment *segment,
					   __u16 hook)
{
	__u32 wanted = USUAL_STATE | hook;

	return !(((head->state[dir] ^ wanted) & (wanted | USUAL_STATE_NOT)) |
		 (head->state[!dir] & USUAL_OTHER_NOT) |
		 ((segment->flags ^ TCP_ACK) & USUAL_FLAGS) |
		 (head->version & 1));
}

/*
 * The segment acknowledges data that was sent, ends no timer, and is no duplicate; `next` is 0 if
 * nothing was seen. The last check is whether it acknowledges new data: no processor can predict
 * that, and its cache line may not have arrived.
 */
static __always_inline bool is_usual_ack(const struct conn_side *side,
					 const struct conn_side *other,
					 const struct segment *segment)
{
	__s32 newly = seq_diff(segment->ack, side->acked);

	if (newly < 0 || (timers_armed(other, side) > 0 &&
			  seq_diff(segment->ack, side->awaited) >= 0))
		return false;
	if (seq_diff(segment->ack, other->next) > 0 && other->next)
		return false;
	return segment->ack == other->next || segment->len || newly ||
	       segment->window != side->window;
}

/* The data continues the turn without a gap, and no timer begins. */
static __always_inline bool is_usual_data(const struct conn_head *head, int dir,
					  const struct segment *segment)
{
	const struct conn_side *side = &head->sides[dir];

	if (head->talker != dir)
		return false;
	return !segment->may_time ||
	       !(segment->flags & TCP_PSH ||
		 timers_are_due(side, &head->sides[!dir], segment->now));
}

enum usual {
	UNUSUAL, /* unusual: nothing was changed */
	USUAL,
	USUAL_AGED, /* usual, and its age may have changed */
};

/* @rate: of the direction, if its window has ended. False: the end changes more than the rate. */
static __always_inline bool is_usual_window(const struct conn_head *head,
					    int dir, const struct conn_rate *rate)
{
	return !rate || !(head->state[dir] & CONN_MOVED) ||
	       !is_data_far(head, rate, dir);
}

static __always_inline bool usual_window_end(struct conn_head *head, int dir,
					     struct conn_rate *rate, __u32 tick)
{
	if (head->state[dir] & CONN_MOVED)
		rate_observe(head, rate, dir);
	return window_begin(head, dir, tick);
}

/*
 * @rate: of the direction, if its window has ended; else NULL. @hook: bit of enum conn_state of the
 *        hook.
 */
static __always_inline enum usual usual_observe(struct conn_head *head,
						struct conn_rate *rate, int dir,
						const struct segment *segment,
						__u16 hook)
{
	struct conn_side *side = &head->sides[dir];
	bool is_aged = false;

	/* Computed once, and not again for each member. */
	asm volatile("" : "+r"(side));
	if (!is_usual_state(head, dir, segment, hook) ||
	    segment->seq != side->next || (!segment->window && side->window) ||
	    !is_usual_ack(side, &head->sides[!dir], segment) ||
	    (segment->len && !is_usual_data(head, dir, segment)) ||
	    !is_usual_window(head, dir, rate))
		return UNUSUAL;
	if (rate)
		is_aged = usual_window_end(head, dir, rate, segment->tick);
	if (segment->len) {
		side->next = segment->seq + segment->len;
		head->state[dir] = (head->state[dir] | CONN_MOVED) &
				   ~CONN_DATA_TIMED;
	}
	side->acked = segment->ack;
	side->window = segment->window;
	return is_aged ? USUAL_AGED : USUAL;
}

#endif
