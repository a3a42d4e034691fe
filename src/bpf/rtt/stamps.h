/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples by timestamps (RFC 7323), while data of a direction is lost or retransmitted, when Karn's
 * rule leaves few timers. An acknowledgment echoes the timestamp of the segment that it answers, so
 * it tells a retransmission from the original.
 *
 * Several segments have the same timestamp, since a sender's clock ticks in milliseconds or so.
 * A segment is timed if its timestamp is newer than the timestamps of all segments of its direction
 * since the loss began; the timer is dropped if another segment with the same timestamp follows.
 * Segments from before the loss have no newer timestamp than new data has, but they may have
 * overtaken a retransmission: then only a much newer timestamp counts (STAMPS_OVERTAKEN). The
 * first acknowledgment that covers the segment gives the sample.
 */
#ifndef NETOBS_BPF_RTT_STAMPS_H
#define NETOBS_BPF_RTT_STAMPS_H

#include "segment.h"

/* In ticks of the sender's clock, mostly milliseconds. Linux retransmits after 200 ms at least. */
enum { STAMPS_OVERTAKEN = 100 };

/*
 * @return whether @dir had a duplicate acknowledgment, or data sent again is not all acknowledged
 */
static __always_inline bool stamps_are_watched(const struct conn_head *head,
					       int dir)
{
	return head->state[dir] & CONN_RESENT || head->state[!dir] & CONN_REPEATS;
}

/* Data of @dir up to @next was or may be sent again. */
static __always_inline void stamps_watch(const struct connection *conn, int dir,
					 __u32 next)
{
	conn->body->stats[dir].resent_end = next;
	conn->head->state[dir] |= CONN_RESENT;
}

/*
 * Handle the first acknowledgment of direction @dir above @before. @return when the segment came
 * that it answers, or 0
 */
static __always_inline __u64 stamps_end(const struct connection *conn, int dir,
					const struct segment *segment,
					__u32 before)
{
	const struct conn_stats *stats = &conn->body->stats[!dir];

	if (!(conn->head->state[!dir] & CONN_STAMPED) || !segment->has_stamps)
		return 0;
	if (seq_diff(before, stats->tsval_end) >= 0 ||
	    seq_diff(segment->ack, stats->tsval_end) < 0 ||
	    segment->tsecr != stats->tsval)
		return 0;
	return stats->tsval_ns;
}

/* @return whether a segment of @dir that ends before @end may be timed, if its timestamp is new */
static __always_inline bool stamps_are_due(const struct connection *conn,
					   int dir, const struct segment *segment,
					   __u32 end)
{
	const struct conn_head *head = conn->head;

	return segment->may_time && !(head->state[dir] & CONN_STAMPED) &&
	       head->state[!dir] & CONN_ACKED && end != segment->seq &&
	       seq_diff(end, head->sides[!dir].acked) > 0;
}

/*
 * @return whether a segment has data that had not come before. Old last data was noted:
 * stamps_watch().
 */
static __always_inline bool has_new_data(const struct connection *conn, int dir,
					 const struct segment *segment, __u32 end)
{
	return end != segment->seq && end == conn->head->sides[dir].next &&
	       (!(conn->head->state[dir] & CONN_RESENT) ||
		end != conn->body->stats[dir].resent_end);
}

/* Follow each segment of @dir, which ends before @end, last of all. */
static __always_inline void stamps_follow(const struct connection *conn, int dir,
					  struct segment *segment, __u32 end)
{
	struct conn_stats *stats = &conn->body->stats[dir];
	__u32 acked = conn->head->sides[!dir].acked;
	__u16 *state = &conn->head->state[dir];
	__s32 newer = seq_diff(segment->tsval, stats->tsval_newest);

	if (*state & CONN_RESENT && seq_diff(acked, stats->resent_end) >= 0)
		*state &= ~CONN_RESENT;
	if (*state & CONN_STAMPED &&
	    (seq_diff(acked, stats->tsval_end) >= 0 || !segment->has_stamps ||
	     segment->tsval == stats->tsval))
		*state &= ~CONN_STAMPED;
	if (!stamps_are_watched(conn->head, dir) || !segment->has_stamps) {
		*state &= ~CONN_STAMPS_SEEN;
		return;
	}
	if (*state & CONN_STAMPS_SEEN && newer > 0 &&
	    stamps_are_due(conn, dir, segment, end)) {
		stats->tsval = segment->tsval;
		stats->tsval_end = end;
		stats->tsval_ns = segment_time(segment);
		segment->leaves |= LEAVES_STAMP;
		*state |= CONN_STAMPED;
	}
	if (!(*state & CONN_STAMPS_SEEN))
		stats->tsval_newest = has_new_data(conn, dir, segment, end) ?
					      segment->tsval :
					      segment->tsval + STAMPS_OVERTAKEN;
	else if (newer > 0)
		stats->tsval_newest = segment->tsval;
	*state |= CONN_STAMPS_SEEN;
}

static __always_inline bool stamps_matter(const struct conn_head *head, int dir)
{
	return head->state[dir] &
		       (CONN_RESENT | CONN_STAMPED | CONN_STAMPS_SEEN) ||
	       head->state[!dir] & CONN_REPEATS;
}

/* @return whether the timestamps of a segment of @dir may be needed; called before it is handled */
static __always_inline bool stamps_are_needed(const struct conn_head *head,
					      int dir,
					      const struct segment *segment)
{
	return head->state[!dir] & (CONN_STAMPED | CONN_REPEATS) ||
	       head->state[dir] &
		       (CONN_RESENT | CONN_STAMPED | CONN_STAMPS_SEEN) ||
	       seq_diff(segment->seq, head->sides[dir].next) < 0;
}

#endif
