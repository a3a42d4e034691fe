/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Segments that wait in a queueing discipline of this host. The programs see a segment in front of it,
 * so the segment is noted there if it was timed, and its times move on when the discipline gives it
 * back (leaving.bpf.c). Nothing can answer it earlier. Pure: the same header builds for the host.
 *
 * A note has sequence and acknowledgment number, which neither NAT nor a tunnel of this host changes,
 * and the place of the times. It stays, as a busy driver may put a packet back, and may match a
 * retransmission. That does no harm: its data is acknowledged, or it has dropped what was timed before it,
 * and what is timed after it leaves after it. If another note replaces it before its segment is
 * acknowledged, what that timed gives no sample.
 */
#ifndef NETOBS_BPF_RTT_LEAVE_H
#define NETOBS_BPF_RTT_LEAVE_H

#include "echoes.h"

enum {
	LEAVING_BYTES_MAX = 1 << 20, /* of a buffer */
	LEAVING_TICKS_MAX = 1 << 14, /* that a packet waits: 17 s */
	LEAVING_TICKS_LATE = 16,     /* by which the clocks of CPUs differ */
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

/* A time in the future gives no sample. */
#define LEAVING_NEVER (1ULL << 62)

/*
 * Replaces a note of the same segment and connection, else the oldest one. @return whether @ret_old was of
 * another segment, which may wait still
 */
static __always_inline bool leaving_put(struct leaving_bucket *bucket,
					const struct leaving *note,
					struct leaving *ret_old)
{
	__u32 most = 0; /* age, then way */

	for (__u32 i = 0; i < LEAVING_WAYS; i++) {
		const struct leaving *old = &bucket->of[i];
		__u32 age = (__u16)(note->tick - old->tick + LEAVING_TICKS_LATE);

		if (old->seq == note->seq && old->ack == note->ack &&
		    (old->place ^ note->place) >> LEAVING_DIR_SHIFT == 0)
			age = 1 << 16;
		age = age * LEAVING_WAYS + i;
		most = pick(most - age, age, most);
	}
	*ret_old = bucket->of[most % LEAVING_WAYS];
	bucket->of[most % LEAVING_WAYS] = *note;
	return most / LEAVING_WAYS < LEAVING_TICKS_MAX;
}

/* @return whether the receiver has all below @end: a segment that leaves now is sent again */
static __always_inline bool is_leaving_acked(const struct connection *conn,
					     __u32 dir, __u32 end)
{
	return conn->head->state[!dir] & CONN_ACKED &&
	       seq_diff(conn->head->sides[!dir].acked, end) >= 0;
}

/* @return whether what ends before @end was timed by a segment with @seq: of another connection, numbers differ */
static __always_inline bool is_leaving(__u32 end, __u32 seq)
{
	return end - seq - 1 < LEAVING_BYTES_MAX;
}

/* The note of a segment is gone: if it waits still, nothing will say how long. */
static __always_inline void leaving_forget(const struct connection *conn,
					   const struct leaving *note)
{
	__u32 dir = note->place >> LEAVING_DIR_SHIFT & 1;
	__u32 i = timer_slot(note->place >> LEAVES_TIMER_SHIFT);
	struct conn_timers *timers = &conn->body->timers[dir];
	struct conn_stats *stats = &conn->body->stats[dir];
	__u32 next = conn->head->sides[dir].next;
	bool is_acked = is_leaving_acked(conn, dir, note->seq + 1);

	if (note->place & LEAVES_ECHO) {
		if (timers->targets[i] == note->seq)
			WRITE_ONCE(timers->armed_ns[i],
				   timers->armed_ns[i] | ECHO_TWICE);
		return;
	}
	if (note->place & LEAVES_TIMER && !is_acked &&
	    is_leaving(timers->targets[i], note->seq))
		timers->armed_ns[i] = LEAVING_NEVER;
	if (note->place & LEAVES_STAMP && is_leaving(stats->tsval_end, note->seq))
		stats->tsval_ns = LEAVING_NEVER;
	/* Data that was acknowledged may have been sent again, with new data behind it, in the same turn. */
	if (note->place & LEAVES_TURN &&
	    (!is_acked || note->ack == conn->head->sides[dir].acked) &&
	    !is_leaving_acked(conn, dir, next) && is_leaving(next, note->seq))
		stats->data_ns = LEAVING_NEVER;
}

static __always_inline void leaving_move(__u64 *time, __u64 ns)
{
	if (*time < LEAVING_NEVER)
		*time = ns;
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
	if (place & LEAVES_TIMER &&
	    !is_leaving_acked(conn, dir, timers->targets[i]) &&
	    is_leaving(timers->targets[i], seq))
		leaving_move(&timers->armed_ns[i], ns);
	if (place & LEAVES_STAMP && stats->tsval == tsval &&
	    is_leaving(stats->tsval_end, seq))
		leaving_move(&stats->tsval_ns, ns);
	if (place & LEAVES_TURN &&
	    !is_leaving_acked(conn, dir, conn->head->sides[dir].next) &&
	    is_leaving(conn->head->sides[dir].next, seq))
		leaving_move(&stats->data_ns, ns);
}

#endif
