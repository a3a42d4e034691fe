/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Segments that no end of a connection has sent. Anyone can send a segment with the addresses of others,
 * but must guess its numbers, and its receiver refuses it if they are wrong (RFC 9293, 3.10.7.4; RFC
 * 5961). Such a segment changes nothing here, either. Accepted is
 *
 *	data within the window of its receiver, and up to one window behind the newest,
 *	an acknowledgment of what was sent, and up to one window behind the newest one,
 *	RST with the next number, a SYN that was sent before.
 *
 * A segment with older numbers may be a retransmission. Its receiver refuses it as well, and nothing
 * here distinguishes it from a forged one. The window is the largest that was seen, and WINDOW_LEAST at least. Without both SYNs, its
 * scale is not known, nor how much was sent before: data and acknowledgments may be WINDOW_UNKNOWN
 * ahead or behind.
 *
 * The numbers may be right and ours wrong, if segments did not come here for a while. So another one after
 * REFUSED_RUN of a direction is believed, if each is near the one before and nothing else came between
 * them that moved a number.
 */
#ifndef NETOBS_BPF_RTT_REFUSE_H
#define NETOBS_BPF_RTT_REFUSE_H

#include "segment.h"
#include "data.h"

enum {
	SYN_RETRY_BYTES = 1 << 20,
	WINDOW_LEAST = 65535,	  /* a SYN has this without a scale */
	WINDOW_UNKNOWN = 1 << 25, /* a SYN was not seen */
	REFUSED_RUN = 7,
};

/* ---- SYN and RST ------------------------------------------------------------------ */

/*
 * @return whether a SYN begins another connection with the tuple. If a connection was found
 * open, a SYN with a number shortly before its data is its own SYN, sent again.
 */
static __always_inline bool is_another(const struct connection *conn, int dir,
				       const struct segment *segment)
{
	__u16 state = conn->head->state[dir];
	__u32 since = conn->head->sides[dir].next - segment->seq;

	if ((segment->flags & (TCP_SYN | TCP_RST)) != TCP_SYN ||
	    !(state & CONN_SEEN))
		return false;
	if (state & CONN_SYN)
		return conn->body->stats[dir].isn != segment->seq;
	return since > SYN_RETRY_BYTES;
}

/*
 * @return whether the newest refused segment of direction @dir is a SYN, and @number the next
 * number after it
 */
static __always_inline bool has_asked(const struct connection *conn, int dir,
				      __u32 number)
{
	const struct conn_stats *stats = &conn->body->stats[dir];

	return stats->refused_end && !stats->refused_run &&
	       stats->refused_end == number;
}

static __always_inline bool is_answer(const struct connection *conn, int dir,
				      const struct segment *segment)
{
	return segment->flags & TCP_SYN && segment->flags & TCP_ACK &&
	       has_asked(conn, !dir, segment->ack);
}

/*
 * @return whether to refuse a segment for which is_another() is true. The receiver of a SYN for an
 * open connection asks whether the other end is still there (RFC 5961, 4). If it is not, a RST
 * follows, or the SYN+ACK that answers this SYN. If the other direction is not observed, the SYN is
 * sent again, or data follows it.
 */
static __always_inline bool is_stray(const struct connection *conn, int dir,
				     const struct segment *segment)
{
	enum conn_class class = conn_class(conn);

	if (class != CONN_OPEN && class != CONN_UNANSWERED)
		return false;
	return !is_answer(conn, dir, segment) &&
	       (class == CONN_OPEN || !has_asked(conn, dir, segment->seq + 1));
}

/*
 * @return whether a segment with wrong numbers follows a refused SYN, where the other direction is
 * not observed
 */
static __always_inline bool is_past_stray(const struct connection *conn,
					  int dir, const struct segment *segment)
{
	return !(segment->flags & TCP_RST) &&
	       conn_class(conn) == CONN_UNANSWERED &&
	       (has_asked(conn, dir, segment->seq) ||
		is_answer(conn, dir, segment));
}

/*
 * RFC 9293, 3.10.7.4, and RFC 5961, 3.2: a RST must have the next number by its sender's or its
 * receiver's count. If neither is known, it must answer a SYN (3.10.7.3).
 */
static __always_inline bool is_reset_right(const struct connection *conn,
					   int dir, const struct segment *segment)
{
	const struct conn_head *head = conn->head;

	if (head->state[dir] & CONN_SEEN && segment->seq == head->sides[dir].next)
		return true;
	if (head->state[!dir] & CONN_ACKED)
		return segment->seq == head->sides[!dir].acked;
	return segment->flags & TCP_ACK && head->state[!dir] & CONN_SEEN &&
	       segment->ack == head->sides[!dir].next;
}

/* ---- Numbers ------------------------------------------------------------------------ */

static __always_inline bool is_within(__u32 number, __u32 low, __u32 high)
{
	return number - low <= high - low;
}

/* Bytes that the end of direction @dir may have let the other one send. */
static __always_inline __u32 window_of(const struct connection *conn, int dir)
{
	const struct conn_stats *own = &conn->body->stats[dir];
	const struct conn_stats *other = &conn->body->stats[!dir];
	__u32 current = conn->head->sides[dir].window;
	__u32 window = own->window_max;

	if (!own->scale || !other->scale)
		return WINDOW_UNKNOWN;
	if (window && current > window)
		window = current;
	if (own->scale >= SCALE_0 && other->scale >= SCALE_0)
		window <<= (own->scale - SCALE_0) & 15;
	return window > WINDOW_LEAST ? window : WINDOW_LEAST;
}

/* Until the other end has sent something, this end can acknowledge no more than its SYN. */
static __always_inline bool is_syn_alone(const struct connection *conn, int dir)
{
	__u16 state = conn->head->state[dir], other = conn->head->state[!dir];

	return state & CONN_SYN && !(state & CONN_ACKED) && !(other & CONN_SEEN);
}

static __always_inline bool is_seq_right(const struct connection *conn, int dir,
					 const struct segment *segment)
{
	const struct conn_side *side = &conn->head->sides[dir];
	__u32 acked = conn->head->sides[!dir].acked, next = side->next;
	__u32 end = segment->seq + segment_span(segment), window;

	if (!(conn->head->state[dir] & CONN_SEEN)) {
		if (is_syn_alone(conn, !dir))
			return segment->flags & TCP_SYN;
		next = acked;
	} else if (segment->seq == next) {
		return true;
	}
	if (is_syn_alone(conn, dir))
		return is_within(segment->seq,
				 conn->body->stats[dir].isn +
					 !(segment->flags & TCP_SYN),
				 next);
	window = window_of(conn, !dir);
	if (!(conn->head->state[!dir] & CONN_ACKED))
		return !(conn->head->state[dir] & CONN_SEEN) ||
		       is_within(segment->seq, next - window, next + window);
	if (seq_diff(acked + window, next) > 0)
		acked += window;
	else
		acked = next;
	return is_within(segment->seq, next - window, acked) &&
	       seq_diff(end, acked) <= 0;
}

/* An acknowledgment of data that was not seen is wrong, if all earlier data was seen here. */
static __always_inline bool is_ack_right(const struct connection *conn, int dir,
					 const struct segment *segment)
{
	const struct conn_side *side = &conn->head->sides[dir];
	__u16 state = conn->head->state[dir], other = conn->head->state[!dir];
	__u32 low = side->acked, high = conn->head->sides[!dir].next, window;

	if (!(segment->flags & TCP_ACK))
		return segment->flags & TCP_SYN;
	if (!(other & CONN_SEEN))
		return !(state & CONN_ACKED) || segment->seq == side->next ||
		       is_within(segment->ack, low - WINDOW_UNKNOWN,
				 low + WINDOW_UNKNOWN);
	if (!(state & CONN_ACKED)) {
		if (other & CONN_SYN)
			return is_within(segment->ack,
					 conn->body->stats[!dir].isn + 1, high);
		low = high;
	}
	if (seq_diff(segment->ack, low) >= 0 && seq_diff(segment->ack, high) <= 0)
		return true;
	window = window_of(conn, dir);
	if (seq_diff(low, high) > 0)
		high = low + window;
	else if (~other & (CONN_SYN | CONN_SYNCED))
		high += window;
	return is_within(segment->ack, low - window, high);
}

/* Most segments have the next numbers of both directions: segment_judge() returns SEGMENT_ITS. */
static __always_inline bool is_in_order(const struct conn_head *head, int dir,
					const struct segment *segment)
{
	const struct conn_side *side = &head->sides[dir];
	__u16 missing = ~head->state[dir] & (CONN_SEEN | CONN_ACKED);

	missing |= ~head->state[!dir] & CONN_SEEN;
	return !missing && segment->seq == side->next &&
	       (segment->flags & (TCP_SYN | TCP_RST | TCP_ACK)) == TCP_ACK &&
	       seq_diff(segment->ack, side->acked) >= 0 &&
	       seq_diff(segment->ack, head->sides[!dir].next) <= 0;
}

enum verdict {
	SEGMENT_ITS,	 /* of this connection */
	SEGMENT_ANOTHER, /* a connection with the same tuple begins */
	SEGMENT_REFUSED,
};

static __always_inline enum verdict segment_judge(const struct connection *conn,
						  int dir,
						  const struct segment *segment)
{
	bool is_right;

	if (is_another(conn, dir, segment))
		return is_stray(conn, dir, segment) ? SEGMENT_REFUSED :
						      SEGMENT_ANOTHER;
	if (segment->flags & TCP_RST)
		is_right = is_reset_right(conn, dir, segment);
	else
		is_right = is_seq_right(conn, dir, segment) &&
			   is_ack_right(conn, dir, segment);
	if (is_right)
		return SEGMENT_ITS;
	return is_past_stray(conn, dir, segment) ? SEGMENT_ANOTHER :
						   SEGMENT_REFUSED;
}

/* ---- Refused segments ---------------------------------------------------------------- */

/* @return a mark that changes, except once in 256 times, when either direction advances */
static __always_inline __u8 progress_mark(const struct conn_head *head)
{
	const struct conn_side *sides = head->sides;

	return (sides[0].next + sides[0].acked + sides[1].next + sides[1].acked) *
		       0x9e3779b1U >>
	       24;
}

/* Restart the direction as if it were found open with this segment; its counters stay. */
static __always_inline void resume(const struct connection *conn, int dir,
				   const struct segment *segment)
{
	struct conn_stats *stats = &conn->body->stats[dir];
	struct conn_side *side = &conn->head->sides[dir];
	__u16 *state = &conn->head->state[dir];

	if (*state & CONN_SEEN)
		stats->data_bytes +=
			conn_data_since(stats, conn_data_end(conn->head, dir));
	__builtin_memset(stats->gaps, 0, sizeof(stats->gaps));
	timers_drop(conn, dir);
	*state &= CONN_SYN | CONN_INGRESS | CONN_EGRESS;
	data_first(conn, dir, segment);
	if (segment->flags & TCP_ACK) {
		*state |= CONN_ACKED;
		side->acked = segment->ack;
		side->awaited = segment->ack;
		side->tail = conn->head->sides[!dir].head;
	}
}

/* Note a segment that is SEGMENT_REFUSED. */
static __always_inline void refuse(const struct connection *conn, int dir,
				   const struct segment *segment)
{
	struct conn_stats *stats = &conn->body->stats[dir];
	__u32 apart = segment->seq - stats->refused_end + WINDOW_LEAST;
	__u8 mark = progress_mark(conn->head);
	bool goes_on = mark == stats->refused_mark && apart <= 2 * WINDOW_LEAST;

	if (segment->flags & TCP_RST ||
	    ((segment->flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK) &&
	     conn_class(conn) == CONN_OPEN))
		return;
	stats->refused_end = segment->seq + segment_span(segment);
	stats->refused_mark = mark;
	if (segment->flags & TCP_SYN)
		stats->refused_run = 0;
	else if (!stats->refused_run || !goes_on)
		stats->refused_run = 1;
	else if (stats->refused_run < REFUSED_RUN)
		stats->refused_run++;
	else
		resume(conn, dir, segment);
}

#endif
