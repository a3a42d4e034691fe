/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The acknowledgments of a direction for data of the other one. */
#ifndef NETOBS_BPF_RTT_ACKS_H
#define NETOBS_BPF_RTT_ACKS_H

#include "data.h"

/* Take a sample: direction @dir has acknowledged a timed segment of the other direction. */
static __always_inline void ack_sample(const struct connection *conn, int dir,
				       struct segment *segment, __u64 armed_ns,
				       bool is_handshake)
{
	struct conn_stats *stats = &conn->body->stats[!dir];
	__s64 ns = segment_time(segment) - armed_ns;
	__u32 sample = latency_of(ns);

	if (ns < 0) /* the clocks of two CPUs differ */
		return;
	if (is_handshake)
		stats->handshake = sample;
	latency_add(&stats->rtt, sample, segment->tick);
	segment->taken |= TAKEN_RTT;
}

/*
 * The first acknowledgment of this direction. If it answers a SYN, it must acknowledge the SYN alone,
 * and if the SYN had no ACK, it must have SYN itself: otherwise it belongs to another connection.
 */
static __always_inline void ack_first(const struct connection *conn, int dir,
				      struct segment *segment)
{
	struct conn_side *side = &conn->head->sides[dir];
	__u32 ack = segment->ack;
	__u64 armed_ns;

	conn->head->state[dir] |= CONN_ACKED;
	side->acked = ack;
	side->awaited = ack;
	if (!(conn->head->state[!dir] & CONN_SYN))
		return;
	armed_ns = timers_end(conn, dir, ack);
	if (!armed_ns || ack != conn->body->stats[!dir].isn + 1 ||
	    (conn->head->opener != dir && !(segment->flags & TCP_SYN)))
		return;
	ack_sample(conn, dir, segment, armed_ns, true);
}

/* RFC 5681, 2: a duplicate repeats the previous acknowledgment, without data, while data is outstanding. */
static __always_inline bool is_duplicate(const struct connection *conn, int dir,
					 const struct segment *segment)
{
	const struct conn_side *side = &conn->head->sides[dir];

	return !segment->len && !(segment->flags & (TCP_SYN | TCP_FIN)) &&
	       segment->window == side->window &&
	       seq_diff(conn->head->sides[!dir].next, segment->ack) > 0;
}

static __always_inline void ack_observe(const struct connection *conn, int dir,
					struct segment *segment)
{
	const struct conn_side *other = &conn->head->sides[!dir];
	struct conn_side *side = &conn->head->sides[dir];
	__u32 before = side->acked;
	__s32 newly = seq_diff(segment->ack, before);
	__u64 armed_ns = 0;

	if (!(conn->head->state[dir] & CONN_ACKED)) {
		ack_first(conn, dir, segment);
	} else if (newly > 0) {
		side->acked = segment->ack;
		conn->head->state[dir] &= ~CONN_REPEATS;
		if (timers_armed(other, side) > 0 &&
		    seq_diff(segment->ack, side->awaited) >= 0)
			armed_ns = timers_end(conn, dir, segment->ack) *
				   pick(gaps_missed(&conn->body->stats[!dir],
						    segment->ack),
					0, 1);
		if (!armed_ns)
			armed_ns = stamps_end(conn, dir, segment, before);
		if (armed_ns && seq_diff(segment->ack, other->next) <= 0)
			ack_sample(conn, dir, segment, armed_ns, false);
	} else if (!newly && is_duplicate(conn, dir, segment)) {
		conn->body->stats[dir].duplicate_acks++;
		conn->head->state[dir] |= CONN_REPEATS;
	}
}

/* For all segments except RST, whose window is meaningless. */
static __always_inline void window_observe(const struct connection *conn,
					   int dir, const struct segment *segment)
{
	struct conn_stats *stats = &conn->body->stats[dir];
	struct conn_side *side = &conn->head->sides[dir];

	if (segment->window > stats->window_max && !(segment->flags & TCP_SYN))
		stats->window_max = segment->window;
	if (segment->window == side->window)
		return;
	if (!segment->window && conn->head->state[dir] & CONN_SEEN)
		stats->zero_windows++;
	side->window = segment->window;
}

#endif
