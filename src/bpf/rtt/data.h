/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data of a direction: which bytes are new, retransmitted, or out of order.
 *
 * Bytes below `next` that were seen here before are retransmitted. Bytes below `next` that were not
 * seen are in a gap, and count as out of order when they come: they were lost on their way to this
 * host, or overtaken. An entry lists CONN_GAPS gaps. If more are open, the others are in one range,
 * `unlisted`, together with the data between them. A segment in this range is either
 * retransmitted or out of order, and counts as unknown. An acknowledgment closes the gaps below it.
 * All gaps of a connection that is older than its entry are in this range.
 *
 * If a connection is older than its entry, its first segment may be a retransmission, and bytes
 * that seem new may have been sent before: after a timeout, a sender may send all again, a growing part
 * with each round trip. So segments are timed only after SYNC_ROUNDS in which all data up to the newest
 * byte was acknowledged before more came, with no retransmission in between. A sender that then rested for
 * SYNC_QUIET has nothing to send again, and two such rests are enough. All later bytes are new. Until
 * then, the timers have other uses: enum sync_target.
 */
#ifndef NETOBS_BPF_RTT_DATA_H
#define NETOBS_BPF_RTT_DATA_H

#include "stamps.h"
#include "timers.h"

/* If a connection is older than its entry, so much before its first segment is unknown. */
#define GAP_UNKNOWN (1U << 30)

enum sync_target {
	SYNC_END, /* data up to here must be acknowledged before the next round */
	SYNC_DONE, /* rounds done; each rest counts as SYNC_ROUNDS / 2 */
	SYNC_TICK, /* when the newest data came */
};

enum {
	SYNC_ROUNDS = 10,
	SYNC_QUIET = 954, /* ticks: 1.0 s */
};

/* ---- Gaps --------------------------------------------------------------------- */

/*
 * @a if @sign is negative, else @b. Without a branch: the verifier would walk both of its ways for
 * each gap, and for each of these both ways of the next one.
 */
static __always_inline __u32 pick(__s32 sign, __u32 a, __u32 b)
{
	__u32 mask = sign >> 31;

	asm volatile("" : "+r"(mask));
	return (a & mask) | (b & ~mask);
}

static __always_inline bool is_no_gap(const struct conn_gap *gap)
{
	return gap->start == gap->end;
}

/* The part of @gap from @start to @end. */
static __always_inline struct conn_gap gap_part(const struct conn_gap *gap,
						__u32 start, __u32 end)
{
	start = pick(seq_diff(start, gap->start), gap->start, start);
	end = pick(seq_diff(gap->end, end), gap->end, end);
	return (struct conn_gap){ start, pick(seq_diff(start, end), end, start) };
}

static __always_inline void gap_widen(struct conn_gap *gap, __u32 start, __u32 end)
{
	bool is_empty = is_no_gap(gap);

	if (is_empty || seq_diff(start, gap->start) < 0)
		gap->start = start;
	if (is_empty || seq_diff(end, gap->end) > 0)
		gap->end = end;
}

static __always_inline void gap_add(struct conn_stats *stats, __u32 start,
				    __u32 end)
{
	for (int i = 0; i < CONN_GAPS; i++) {
		if (is_no_gap(&stats->gaps[i])) {
			stats->gaps[i].start = start;
			stats->gaps[i].end = end;
			return;
		}
	}
	gap_widen(&stats->unlisted, start, end);
}

/* Remove [@start, @end) from a gap. Returns the removed part; *@ret_rest is the part to its right. */
static __always_inline struct conn_gap
gap_cut(struct conn_gap *gap, __u32 start, __u32 end, struct conn_gap *ret_rest)
{
	struct conn_gap part = gap_part(gap, start, end);
	/* Negative: there is a part, something left of it, and something right of it. */
	__s32 is_cut = seq_diff(part.start, part.end);
	__s32 has_left = seq_diff(gap->start, part.start);
	__s32 has_both = is_cut & has_left & seq_diff(part.end, gap->end);

	ret_rest->start = pick(has_both, part.end, ret_rest->start);
	ret_rest->end = pick(has_both, gap->end, ret_rest->end);
	start = pick(has_left, gap->start, part.end);
	end = pick(has_left, part.start, gap->end);
	gap->start = pick(is_cut, start, gap->start);
	gap->end = pick(is_cut, end, gap->end);
	return part;
}

/* Bytes below `next`. */
struct late_bytes {
	__u32 filled; /* bytes that were in gaps */
	__u32 unknown; /* bytes that may have been: in `unlisted`, but in no listed gap */
};

/* Remove [@start, @end), which has come, from the gaps. */
static __always_inline struct late_bytes gaps_fill(struct conn_stats *stats,
						   __u32 start, __u32 end)
{
	struct conn_gap part = gap_part(&stats->unlisted, start, end);
	struct late_bytes late = { .unknown = part.end - part.start };
	struct conn_gap rest = { stats->unlisted.end, stats->unlisted.end };

	for (int i = 0; i < CONN_GAPS; i++) {
		struct conn_gap both;

		part = gap_cut(&stats->gaps[i], start, end, &rest);
		both = gap_part(&stats->unlisted, part.start, part.end);
		late.filled += part.end - part.start;
		late.unknown -= pick(seq_diff(part.start, part.end),
				     both.end - both.start, 0);
	}
	if (!is_no_gap(&rest))
		gap_add(stats, rest.start, rest.end);
	return late;
}

/* Forget gaps below @acked: the receiver has their bytes. */
static __always_inline void gaps_forget(struct conn_stats *stats, __u32 acked)
{
	for (int i = 0; i < CONN_GAPS; i++) {
		struct conn_gap *gap = &stats->gaps[i];

		gap->end = pick(seq_diff(acked, gap->end), gap->end, gap->start);
	}
	stats->unlisted = gap_part(&stats->unlisted, acked, stats->unlisted.end);
}

/* Negative: @acked covers a listed gap: the receiver got data that did not pass here. */
static __always_inline __s32 gaps_missed(const struct conn_stats *stats,
					 __u32 acked)
{
	__s32 missed = 0;

	for (int i = 0; i < CONN_GAPS; i++) {
		const struct conn_gap *gap = &stats->gaps[i];

		missed |= seq_diff(gap->start, gap->end) &
			  ~seq_diff(acked, gap->end);
	}
	return missed;
}

/* ---- Data that was sent before -------------------------------------------------- */

/*
 * RFC 9293, 3.8.4: a keep-alive has the number before the next one, at most with a byte that
 * was acknowledged.
 */
static __always_inline bool is_keepalive(const struct connection *conn, int dir,
					 const struct segment *segment)
{
	const struct conn_side *side = &conn->head->sides[dir];

	return segment->len <= 1 && !(segment->flags & (TCP_SYN | TCP_FIN)) &&
	       segment->seq == side->next - 1 &&
	       conn->head->state[!dir] & CONN_ACKED &&
	       conn->head->sides[!dir].acked == side->next;
}

static __always_inline void count_old(struct conn_stats *stats,
				      const struct segment *segment, __u32 span,
				      struct late_bytes late, bool has_fin)
{
	__u32 seen = span - late.filled - late.unknown;

	if (late.filled)
		stats->out_of_order += segment_count(segment, late.filled);
	if (late.unknown)
		stats->late_unknown += segment_count(segment, late.unknown);
	if (!seen)
		return;
	stats->retransmitted += segment_count(segment, seen);
	stats->retransmitted_bytes += seen - has_fin;
}

/* Count the first @old sequence numbers of a segment, which are below `next`. */
static __always_inline void data_count_old(const struct connection *conn,
					   int dir, const struct segment *segment,
					   __u32 old)
{
	struct conn_stats *stats = &conn->body->stats[dir];
	__u32 end = segment->seq + old;
	bool has_fin = segment->flags & TCP_FIN && old == segment_span(segment);

	if (segment->flags & TCP_SYN)
		return;
	if (conn->head->state[!dir] & CONN_ACKED)
		gaps_forget(stats, conn->head->sides[!dir].acked);
	count_old(stats, segment, old, gaps_fill(stats, segment->seq, end),
		  has_fin);
}

/* Effects of old data, except its count. */
static __always_inline void data_again(const struct connection *conn, int dir)
{
	struct conn_side *side = &conn->head->sides[dir];

	timers_drop(conn, dir);
	stamps_watch(conn, dir, side->next);
	/* The other side's answer may have waited for this data. */
	conn->head->state[dir] &= ~CONN_DATA_TIMED;
	if (!(conn->head->state[dir] & CONN_SYNCED)) {
		conn->body->timers[dir].targets[SYNC_END] = side->next;
		conn->body->timers[dir].targets[SYNC_DONE] = 0;
	}
}

/* ---- New data -------------------------------------------------------------------- */

/* A SYN is the first one, unless the other direction was seen without a SYN: then it may be a retry. */
static __always_inline bool is_opening(const struct connection *conn, int dir,
				       const struct segment *segment)
{
	__u16 other = conn->head->state[!dir];

	return segment->flags & TCP_SYN &&
	       (other & CONN_SYN || !(other & CONN_SEEN));
}

static __always_inline void data_first(const struct connection *conn, int dir,
				       const struct segment *segment)
{
	struct conn_stats *stats = &conn->body->stats[dir];
	struct conn_side *side = &conn->head->sides[dir];
	__u32 first = segment->seq;

	side->next = first;
	side->due = segment->now >> CONN_DUE_SHIFT;
	side->window_end = segment->tick + CONN_RATE_WINDOW;
	stats->data_next = first + !!(segment->flags & TCP_SYN);
	conn->rates->sides[dir].window_next = stats->data_next;
	conn->head->state[dir] |= CONN_SEEN;
	if (is_opening(conn, dir, segment)) {
		conn->head->state[dir] |= CONN_SYN | CONN_SYNCED;
		stats->isn = first;
		if (conn->head->opener == CONN_NEITHER)
			conn->head->opener = segment->flags & TCP_ACK ? !dir :
									dir;
	} else {
		conn->body->timers[dir].targets[SYNC_END] =
			first + segment_span(segment);
		conn->body->timers[dir].targets[SYNC_DONE] = 0;
		conn->body->timers[dir].targets[SYNC_TICK] = segment->tick;
		stats->unlisted.start = first - GAP_UNKNOWN;
		stats->unlisted.end = first;
	}
}

/* Segments may have been missed: restart counting the rounds. */
static __always_inline void sync_restart(const struct connection *conn, int dir,
					 __u32 end)
{
	__u32 *targets = conn->body->timers[dir].targets;

	conn->head->sides[dir].head = conn->head->sides[!dir].tail;
	conn->head->state[dir] &= ~CONN_SYNCED;
	targets[SYNC_END] = end;
	targets[SYNC_DONE] = 0;
}

/*
 * New data ends before @end, and all data before it was acknowledged. @quiet: ticks since the
 * previous data. Without a branch, as pick().
 */
static __always_inline void sync_round(const struct connection *conn, int dir,
				       __u32 end, __u32 quiet)
{
	__u32 *targets = conn->body->timers[dir].targets;
	__u32 done = targets[SYNC_DONE] +
		     pick(quiet - SYNC_QUIET, 1, SYNC_ROUNDS / 2);

	targets[SYNC_END] = end;
	targets[SYNC_DONE] = done;
	conn->head->state[dir] |= pick(done - SYNC_ROUNDS, 0, CONN_SYNCED);
}

/* @return whether data that ends before @end is certainly new. No segment is timed before that. */
static __always_inline bool data_synchronise(const struct connection *conn,
					     int dir, __u32 end, __u32 tick)
{
	struct conn_stats *stats = &conn->body->stats[dir];
	struct conn_side *side = &conn->head->sides[dir];
	__u32 *targets = conn->body->timers[dir].targets;
	__u32 acked = conn->head->sides[!dir].acked;
	bool is_synced = conn->head->state[dir] & CONN_SYNCED;
	__u32 quiet;

	if (!(conn->head->state[!dir] & CONN_ACKED))
		return is_synced;
	if (seq_diff(acked, side->next) > 0 || /* data did not pass here */
	    (is_synced && gaps_missed(stats, acked) < 0)) {
		gaps_forget(stats, acked);
		if (seq_diff(acked, side->next) > 0)
			side->next = acked;
		sync_restart(conn, dir, end);
		return false;
	}
	if (is_synced)
		return true;
	quiet = tick - targets[SYNC_TICK];
	targets[SYNC_TICK] = tick;
	if (seq_diff(acked, targets[SYNC_END]) >= 0)
		sync_round(conn, dir, end, quiet);
	return false;
}

/* Data below @seq is missing. If the connection is older than its entry, it may have come earlier. */
static __always_inline void data_missed(const struct connection *conn, int dir,
					__u32 seq)
{
	struct conn_stats *stats = &conn->body->stats[dir];
	__u32 next = conn->head->sides[dir].next;

	if (conn->head->state[dir] & CONN_SYN)
		gap_add(stats, next, seq);
	else
		gap_widen(&stats->unlisted, next, seq);
}

/*
 * Arm a timer for data that ends before @end, if one is due. Segments of a GSO buffer leave one
 * after the other; the buffer has the time of the first.
 */
static __always_inline void data_time(const struct connection *conn, int dir,
				      struct segment *segment, __u32 end)
{
	const struct conn_side *sides = conn->head->sides;
	__u32 first = segment->mss && segment->mss < segment->len ?
			      segment->seq + segment->mss :
			      end;

	if ((segment->may_time || segment->flags & TCP_SYN) &&
	    timers_are_due(&sides[dir], &sides[!dir], segment->now) &&
	    data_synchronise(conn, dir, end, segment->tick))
		segment->leaves |=
			LEAVES_TIMER |
			timers_arm(conn, dir, first, segment_time(segment))
				<< LEAVES_TIMER_SHIFT;
}

#endif
