/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Updates a connection by a segment. Pure: the same headers build for the host, where a model of
 * TCP drives them.
 *
 * Samples are exact, or not taken: there is none if the acknowledgment could answer another segment
 * than the timed one.
 *
 * QUIC has no samples: its acknowledgments are encrypted, endpoints may disable its spin bit or send
 * any value (RFC 9000, 17.4), and where it spins, samples include the delay of the application
 * (RFC 9312, 3.8.2). Nothing would show that such samples are wrong.
 */
#ifndef NETOBS_BPF_RTT_OBSERVE_H
#define NETOBS_BPF_RTT_OBSERVE_H

#include "acks.h"
#include "data.h"
#include "rate.h"
#include "refuse.h"
#include "segment.h"
#include "turns.h"

/*
 * Handle new data, which may begin behind a gap, or with bytes that were seen before. @return how
 * many are old, for data_count_old()
 */
static __always_inline __u32 data_observe(const struct connection *conn, int dir,
					  struct segment *segment, __u32 span)
{
	struct conn_side *side = &conn->head->sides[dir];
	__u32 end = segment->seq + span;
	__s32 ahead = seq_diff(segment->seq, side->next);
	__u32 old = ahead < 0 ? -ahead : 0;

	if (old > span)
		old = span;
	if (ahead > 0) {
		data_missed(conn, dir, segment->seq);
	} else if (ahead < 0) {
		if (is_keepalive(conn, dir, segment))
			return 0;
		data_again(conn, dir);
		if (seq_diff(end, side->next) <= 0)
			return old;
	}
	if (ahead >= 0)
		data_time(conn, dir, segment, end);
	side->next = end;
	conn->head->state[dir] |= CONN_MOVED;
	turn_observe(conn, dir, segment);
	return old;
}

/* In a simultaneous open, each end sends its SYN again with ACK (RFC 9293, 3.5): that is no retry. */
static __always_inline bool is_syn_retry(__u16 before,
					 const struct segment *segment)
{
	return segment->flags & TCP_SYN && before & CONN_SYN &&
	       (before & CONN_ACKED || !(segment->flags & TCP_ACK));
}

/* Work that is due at least every 2^28 bytes, as sequence numbers wrap. */
static __always_inline void data_advance(const struct connection *conn, int dir,
					 __u32 next)
{
	struct conn_stats *stats = &conn->body->stats[dir];

	for (int i = 0; i < CONN_GAPS; i++) {
		if (next - stats->gaps[i].end > GAP_UNKNOWN)
			stats->gaps[i].end = stats->gaps[i].start;
	}
	if (next - stats->unlisted.end > GAP_UNKNOWN)
		stats->unlisted.end = stats->unlisted.start;
	stats->data_bytes += conn_data_since(stats, next);
	stats->data_next = next;
}

/* End a window of the rate. @return whether it began in an earlier unit of ages */
static __always_inline bool window_end(const struct connection *conn, int dir,
				       struct segment *segment)
{
	struct conn_rate *rate = &conn->rates->sides[dir];

	segment->taken |= TAKEN_WINDOW;
	segment->window_bytes = 0;
	if (conn->head->state[dir] & CONN_MOVED) {
		if (is_data_far(conn->head, rate, dir))
			data_advance(conn, dir, conn_data_end(conn->head, dir));
		segment->window_bytes = rate_observe(conn->head, rate, dir);
	}
	return window_begin(conn->head, dir, segment->tick);
}

/*
 * connection_observe() except counting *@ret_old: data_count_old() needs much stack, and nothing
 * else of a segment depends on it.
 */
static __always_inline bool connection_follow(const struct connection *conn,
					      int dir, struct segment *segment,
					      __u32 *ret_old)
{
	__u16 before = conn->head->state[dir];
	__u32 span = segment_span(segment);
	bool is_older = false;

	*ret_old = 0;
	if (segment->flags & TCP_RST) {
		conn->head->state[dir] |= CONN_RST;
		return true;
	}
	if (!(before & CONN_SEEN)) {
		data_first(conn, dir, segment);
		segment->taken |= TAKEN_FIRST;
	}
	if (conn->body->stats[dir].refused_run > 1)
		conn->body->stats[dir].refused_run = 1;
	if (is_window_over(&conn->head->sides[dir], segment->tick))
		is_older = window_end(conn, dir, segment);
	if (segment->flags & TCP_ACK)
		ack_observe(conn, dir, segment);
	window_observe(conn, dir, segment);
	if (segment->flags & TCP_SYN)
		conn->body->stats[dir].scale = segment->scale;
	if (is_syn_retry(before, segment))
		conn->body->stats[dir].syn_retries++;
	if (span)
		*ret_old = data_observe(conn, dir, segment, span);
	if (segment->flags & TCP_FIN)
		conn->head->state[dir] |= CONN_FIN;
	if (stamps_matter(conn->head, dir))
		stamps_follow(conn, dir, segment, segment->seq + span);
	return is_older || (conn->head->state[dir] ^ before) & CONN_CLASS;
}

/* Handle a segment that is SEGMENT_ITS. @return whether the connection's class or age may have changed */
static __always_inline bool connection_observe(const struct connection *conn,
					       int dir, struct segment *segment)
{
	__u32 old;
	bool is_changed = connection_follow(conn, dir, segment, &old);

	if (old)
		data_count_old(conn, dir, segment, old);
	return is_changed;
}

#endif
