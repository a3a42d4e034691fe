/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a segment shows of its connection. Pure: the same headers build for the host, where a
 * model of TCP drives them.
 *
 * Right, or nothing: where a sample could be of another segment than the one that was timed,
 * there is none.
 */
#ifndef NETOBS_BPF_RTT_OBSERVE_H
#define NETOBS_BPF_RTT_OBSERVE_H

#include "acks.h"
#include "data.h"
#include "turns.h"

enum { SYN_RETRY_BYTES = 1 << 20 };

/* New data, which may begin behind a gap, or with some that was seen before. */
static __always_inline void data_observe(struct connection *conn, int dir,
					 struct segment *segment, __u32 span)
{
	struct conn_side *side = &conn->sides[dir];
	__u32 end = segment->seq + span;
	__s32 ahead = seq_diff(segment->seq, side->next);

	if (ahead > 0) {
		gap_add(conn->stats[dir].gaps, side->next, segment->seq);
	} else if (ahead < 0) {
		if (is_keepalive(conn, dir, segment))
			return;
		if (seq_diff(end, side->next) <= 0) {
			data_again(conn, dir, segment, span);
			return;
		}
		data_again(conn, dir, segment, -ahead);
	}
	if (ahead >= 0)
		data_time(conn, dir, segment, end);
	side->next = end;
	if (segment->len)
		turn_observe(conn, dir, segment, end);
}

/*
 * A handshake of its own: the tuple is used again. Of a connection that was found open, a SYN
 * from shortly before its data is its own, sent again.
 */
static __always_inline bool is_another(const struct connection *conn, int dir,
				       const struct segment *segment)
{
	__u8 state = conn->state[dir];
	__u32 since = conn->sides[dir].next - segment->seq;

	if (!(segment->flags & TCP_SYN) || !(state & CONN_SEEN))
		return false;
	if (state & CONN_SYN)
		return conn->stats[dir].isn != segment->seq;
	return since > SYN_RETRY_BYTES;
}

/* Where both ends open, each sends its SYN again with ACK (RFC 9293, 3.5): that is none. */
static __always_inline bool is_syn_retry(__u8 before,
					 const struct segment *segment)
{
	return segment->flags & TCP_SYN && before & CONN_SYN &&
	       (before & CONN_ACKED || !(segment->flags & TCP_ACK));
}

/* RFC 5961, 3.2: anyone can send others. */
static __always_inline void reset_observe(struct connection *conn, int dir,
					  const struct segment *segment)
{
	if (!(conn->state[dir] & CONN_SEEN) ||
	    segment->seq == conn->sides[dir].next)
		conn->state[dir] |= CONN_RST;
}

/* The window of the rate is over. */
static __always_inline void rate_observe(struct connection *conn, int dir,
					 const struct segment *segment)
{
	struct conn_stats *stats = &conn->stats[dir];
	struct conn_side *side = &conn->sides[dir];
	__u32 next = side->next - !!(conn->state[dir] & CONN_FIN);
	__u32 bytes = next - stats->window_next;

	for (int i = 0; i < CONN_GAPS; i++) { /* numbers wrap */
		if (next - stats->gaps[i].end > GAP_UNKNOWN)
			stats->gaps[i].end = stats->gaps[i].start;
	}
	stats->data_bytes += bytes;
	stats->window_next = next;
	if (bytes > stats->peak_bytes)
		stats->peak_bytes = bytes;
	side->window_end = segment->tick + CONN_RATE_WINDOW;
}

/* The class of the connection, after a segment of @dir. */
static __always_inline enum conn_class conn_class(const struct connection *conn)
{
	__u8 both = conn->state[0] & conn->state[1];
	__u8 any = conn->state[0] | conn->state[1];

	if (any & CONN_RST || both & CONN_FIN)
		return CONN_CLOSED;
	return both & CONN_ACKED ? CONN_OPEN : CONN_HALF_OPEN;
}

/*
 * A segment of a connection that is_another() is false for. Returns true if its class may have
 * changed, or the window of its rate was over.
 */
static __always_inline bool connection_observe(struct connection *conn, int dir,
					       struct segment *segment)
{
	__u8 before = conn->state[dir];
	__u32 span = segment_span(segment);
	bool is_over;

	if (segment->flags & TCP_RST) {
		reset_observe(conn, dir, segment);
		return true;
	}
	if (!(before & CONN_SEEN))
		data_first(conn, dir, segment);
	is_over = seq_diff(segment->tick, conn->sides[dir].window_end) >= 0;
	if (is_over)
		rate_observe(conn, dir, segment);
	if (segment->flags & TCP_ACK)
		ack_observe(conn, dir, segment);
	window_observe(conn, dir, segment);
	if (is_syn_retry(before, segment))
		conn->stats[dir].syn_retries++;
	if (span)
		data_observe(conn, dir, segment, span);
	if (segment->flags & TCP_FIN)
		conn->state[dir] |= CONN_FIN;
	return is_over || conn->state[dir] != before;
}

#endif
