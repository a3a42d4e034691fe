/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns: how long one side takes to answer the other. A turn begins when a side sends new data
 * after the other side sent data. It is clean if its first segment acknowledges all data of the
 * other side: its sender had received everything. The time of an answer is a sample if both the
 * answer and the turn before it began clean. So streams in both directions give no samples, nor do
 * requests that overlap. For example,
 *
 *	client  bytes 1-100, PSH           the turn of the client begins
 *	server  ACK 101, bytes 1-1000      clean: the sample is the time since the client's PSH
 *	client  bytes 101-200, ACK 1       not clean: sent before the answer arrived
 *
 * The end of a turn is known exactly if its last segment has PSH or FIN, with which senders mark
 * the end of a write (RFC 9293, 3.9.1.2): the clock is read only for these (CONN_DATA_TIMED).
 */
#ifndef NETOBS_BPF_RTT_TURNS_H
#define NETOBS_BPF_RTT_TURNS_H

#include "latency.h"
#include "segment.h"

static __always_inline void turn_begin(const struct connection *conn, int dir,
				       struct segment *segment)
{
	struct conn_stats *stats = &conn->body->stats[dir];
	__u32 end = conn->head->sides[!dir].next;
	bool is_clean = conn->head->state[dir] & CONN_ACKED &&
			segment->ack == end && segment->flags & TCP_ACK;
	bool is_first = conn->head->talker == CONN_NEITHER;
	__s64 ns;

	conn->head->talker = dir;
	/* If the connection is older than its entry, the turn of its first data may have begun earlier. */
	if (is_first)
		is_clean = is_clean && conn->head->state[dir] & CONN_SYN;
	else if (!is_clean)
		stats->overlaps++;
	if (!is_clean) {
		conn->head->state[dir] &= ~CONN_CLEAN;
		return;
	}
	conn->head->state[dir] |= CONN_CLEAN;
	if (is_first ||
	    (~conn->head->state[!dir] & (CONN_CLEAN | CONN_DATA_TIMED)))
		return;
	ns = segment_time(segment) - conn->body->stats[!dir].data_ns;
	if (ns < 0)
		return;
	latency_add(&stats->turn, latency_of(ns), segment->tick);
	segment->taken |= TAKEN_TURN;
}

/* @return whether the segment's data was acknowledged already: an earlier segment brought it */
static __always_inline bool is_answered(const struct connection *conn, int dir,
					const struct segment *segment)
{
	return conn->head->state[!dir] & CONN_ACKED &&
	       seq_diff(conn->head->sides[!dir].acked,
			segment->seq + segment->len) >= 0;
}

/* Handle new data, or a FIN after all data. */
static __always_inline void turn_observe(const struct connection *conn, int dir,
					 struct segment *segment)
{
	bool is_new = segment->len && !is_answered(conn, dir, segment);
	__u16 *state = &conn->head->state[dir];

	if (is_new && conn->head->talker != dir)
		turn_begin(conn, dir, segment);
	if (is_new && segment->flags & (TCP_PSH | TCP_FIN) && segment->may_time) {
		conn->body->stats[dir].data_ns = segment_time(segment);
		segment->leaves |= LEAVES_TURN;
		*state |= CONN_DATA_TIMED;
	} else if (*state & CONN_DATA_TIMED) {
		*state &= ~CONN_DATA_TIMED;
	}
}

#endif
