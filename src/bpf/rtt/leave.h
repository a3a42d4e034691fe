/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Segments that wait in a queueing discipline of this host. The programs see a segment in front of it,
 * so the segment is noted there if it was timed, and its times move on when the discipline gives it
 * back (leaving.bpf.c). Nothing can answer it earlier. Pure: the same header builds for the host.
 *
 * A note has sequence and acknowledgment number, which neither NAT nor a tunnel of this host changes,
 * and the place of the times. It stays, as a busy driver may put a packet back, and may match a
 * retransmission. That does no harm: its data is acknowledged, or it has dropped what was timed before it,
 * and what is timed after it leaves after it.
 */
#ifndef NETOBS_BPF_RTT_LEAVE_H
#define NETOBS_BPF_RTT_LEAVE_H

#include "echoes.h"

enum {
	LEAVING_BYTES_MAX = 1 << 20, /* of a buffer */
	/* struct leaving, place: index, direction, timer, enum segment_leaves */
	LEAVING_INDEX_SHIFT = LEAVES_TIMER_SHIFT + 3,
	LEAVING_DIR_SHIFT = LEAVES_TIMER_SHIFT + 2,
};

/* @index: of the connection, less than 2^24 */
static __always_inline __u32 leaving_place(__u32 index, __u32 dir, __u8 leaves)
{
	return index << LEAVING_INDEX_SHIFT | (dir & 1) << LEAVING_DIR_SHIFT |
	       leaves;
}

/* Replaces a note of the same segment and connection, else the oldest one. */
static __always_inline void leaving_put(struct leaving_bucket *bucket,
					const struct leaving *note)
{
	__u32 way = 0, most = 0;

	for (__u32 i = 0; i < LEAVING_WAYS; i++) {
		const struct leaving *old = &bucket->of[i];
		__u32 age = (__u16)(note->tick - old->tick);

		if (old->seq == note->seq && old->ack == note->ack &&
		    (old->place ^ note->place) >> LEAVING_DIR_SHIFT == 0)
			age = 1 << 16;
		if (age >= most) {
			most = age;
			way = i;
		}
	}
	bucket->of[way & (LEAVING_WAYS - 1)] = *note;
}

/* @return whether the receiver has all below @end: a segment that leaves now is sent again */
static __always_inline bool is_leaving_acked(const struct connection *conn,
					     __u32 dir, __u32 end)
{
	return conn->head->state[!dir] & CONN_ACKED &&
	       seq_diff(conn->head->sides[!dir].acked, end) >= 0;
}

/*
 * A segment leaves now. @seq: its first byte, or that of the last segment cut from its buffer; @tsval: its
 * timestamp, by which a stamp is told from what was sent again
 */
static __always_inline void leave(const struct connection *conn, __u32 place,
				  __u32 seq, __u32 tsval, __u64 ns)
{
	__u32 dir = place >> LEAVING_DIR_SHIFT & 1;
	__u32 i = timer_slot(place >> LEAVES_TIMER_SHIFT);
	struct conn_timers *timers = &conn->body->timers[dir];
	struct conn_stats *stats = &conn->body->stats[dir];

	if (place & LEAVES_ECHO) {
		if (timers->targets[i] == seq &&
		    !(timers->armed_ns[i] & ECHO_MARKS))
			WRITE_ONCE(timers->armed_ns[i], ns & ~(__u64)ECHO_MARKS);
		return;
	}
	/* Another connection may have the place now: its numbers are elsewhere. */
	if (place & LEAVES_TIMER &&
	    !is_leaving_acked(conn, dir, timers->targets[i]) &&
	    timers->targets[i] - seq - 1 < LEAVING_BYTES_MAX)
		timers->armed_ns[i] = ns;
	if (place & LEAVES_STAMP && stats->tsval == tsval &&
	    stats->tsval_end - seq - 1 < LEAVING_BYTES_MAX)
		stats->tsval_ns = ns;
	if (place & LEAVES_TURN &&
	    !is_leaving_acked(conn, dir, conn->head->sides[dir].next) &&
	    conn->head->sides[dir].next - seq - 1 < LEAVING_BYTES_MAX)
		stats->data_ns = ns;
}

#endif
