/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rate of a direction: bytes per window of CONN_RATE_WINDOW, and their peak. */
#ifndef NETOBS_BPF_RTT_RATE_H
#define NETOBS_BPF_RTT_RATE_H

#include "timers.h"

static __always_inline bool is_window_over(const struct conn_side *side,
					   __u32 tick)
{
	return seq_diff(tick, side->window_end) >= 0;
}

/* Sequence numbers wrap: bytes are added up every 2^28 at least, see data_advance(). */
static __always_inline bool is_data_far(const struct conn_head *head,
					const struct conn_rate *rate, int dir)
{
	return (conn_data_end(head, dir) ^ rate->window_next) >> 28;
}

/* A window with data has ended. @return its bytes */
static __always_inline __u32 rate_observe(struct conn_head *head,
					  struct conn_rate *rate, int dir)
{
	__u32 next = conn_data_end(head, dir), bytes = next - rate->window_next;

	if (bytes > rate->peak_bytes)
		rate->peak_bytes = bytes;
	rate->window_next = next;
	head->state[dir] &= ~CONN_MOVED;
	return bytes;
}

/* Begin a window. @return whether the previous one began in an earlier unit of ages */
static __always_inline bool window_begin(struct conn_head *head, int dir,
					 __u32 tick)
{
	struct conn_side *side = &head->sides[dir];
	__u32 began = side->window_end - CONN_RATE_WINDOW;

	side->window_end = tick + CONN_RATE_WINDOW;
	timers_follow(head, dir);
	return (began ^ tick) >> (CONN_AGE_SHIFT - CONN_TICK_SHIFT);
}

#endif
